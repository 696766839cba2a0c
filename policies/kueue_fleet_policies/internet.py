"""Ranges of addresses that are the internet rather than a network."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any, Final

_INTERNET: Final = {4: 2**26, 6: 2**113}
"""Number of addresses, by version, that no network has: IPv4 is given out in ranges of at most /8, and this is four of
them. Source: https://www.iana.org/assignments/ipv4-address-space"""


def internet_ranges(ranges: Iterable[Any]) -> list[str]:
    """These ranges, merged, where they hold more addresses than any network: `0.0.0.0/0` of its two halves.

    What is not known or is not a range is left out.
    """
    networks = [network for one in ranges if (network := _network(one)) is not None]
    v4 = list(collapse_addresses([network for network in networks if isinstance(network, IPv4Network)]))
    v6 = list(collapse_addresses([network for network in networks if isinstance(network, IPv6Network)]))
    return [
        str(network)
        for version, together in ((4, v4), (6, v6))
        if sum(network.num_addresses for network in together) >= _INTERNET[version]
        for network in together
    ]


def _network(text: Any) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text.strip(), strict=False) if isinstance(text, str) else None
    except ValueError:
        return None
