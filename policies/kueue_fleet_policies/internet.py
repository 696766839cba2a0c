"""Ranges of addresses that are the internet rather than a network."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any, Final

_LARGEST: Final = {4: 7, 6: 16}
"""Shortest prefix, by version, of a range that one network may have: IPv4 is given out in ranges of at most /8, of
which two may stand side by side. Source: https://www.iana.org/assignments/ipv4-address-space"""


def internet_ranges(ranges: Iterable[Any]) -> list[str]:
    """What of these ranges, taken together, is larger than any network: `0.0.0.0/0` of its two halves.

    What is not known or is not a range is left out.
    """
    networks = [network for one in ranges if (network := _network(one)) is not None]
    v4 = collapse_addresses([network for network in networks if isinstance(network, IPv4Network)])
    v6 = collapse_addresses([network for network in networks if isinstance(network, IPv6Network)])
    together: list[IPv4Network | IPv6Network] = [*v4, *v6]
    return [str(network) for network in together if network.prefixlen < _LARGEST[network.version]]


def _network(text: Any) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False) if isinstance(text, str) else None
    except ValueError:
        return None
