"""Which network addresses a picture may be fetched from."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052
_UNICAST = IPv6Network("2000::/3")  # all that IANA has given out of IPv6 for the public internet


def reachable(address: Address, allow: tuple[Network, ...]) -> bool:
    """Whether an address, and each that is hidden in it, is public or in one of the allowed networks."""
    return all(_public(one) or any(one in network for network in allow) for one in _unfold(address))


def _unfold(address: Address) -> Iterator[Address]:
    """The IPv4 address that an IPv6 address leads to, or the address itself.

    A mapped address (RFC 4291) is its IPv4 address. One behind NAT64 (RFC 6052) or 6to4 (RFC 3056) is
    reached through a gateway, so both have to be allowed.
    """
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFF_FFFF)
    else:
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour


def _public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
