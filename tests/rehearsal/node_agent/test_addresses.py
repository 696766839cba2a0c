from __future__ import annotations

import ipaddress
import itertools
import socket

import pytest

from kueue_rehearsal.node_agent import addresses
from kueue_rehearsal.node_agent.addresses import AddressError, candidates, claim_address, taken_ports


def test_candidates_are_the_same_for_the_same_owner_and_stay_in_their_range() -> None:
    first = list(candidates("uid-1"))
    assert first == list(candidates("uid-1"))
    assert first != list(candidates("uid-2"))
    network = ipaddress.ip_network("127.64.0.0/10")
    assert all(ipaddress.ip_address(ip) in network for ip in first)
    assert not any(ip.endswith((".0", ".255")) for ip in first)


def test_two_pods_never_share_an_address_even_if_they_would_choose_the_same() -> None:
    with_same_uid = [claim_address("the same uid") for _ in range(3)]
    assert len({claimed.ip for claimed in with_same_uid}) == 3
    for claimed in with_same_uid:
        claimed.release()
    again = claim_address("the same uid")
    again.release()
    assert again.ip == with_same_uid[0].ip


def test_a_program_on_all_addresses_is_named() -> None:
    with socket.socket() as greedy:
        greedy.bind(("0.0.0.0", 0))
        greedy.listen()
        port = greedy.getsockname()[1]
        claimed = claim_address("pod")
        try:
            assert taken_ports(claimed.ip, [port]) == [port]
        finally:
            claimed.release()


def test_no_free_address_says_what_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [claim_address("crowded")]
    try:
        monkeypatch.setattr(addresses, "candidates", lambda _: itertools.repeat(held[0].ip, 3))
        with pytest.raises(AddressError, match=r"stop whatever listens on 0\.0\.0\.0:29417"):
            claim_address("crowded")
    finally:
        held[0].release()
