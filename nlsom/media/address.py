"""Which network addresses a picture may be fetched from."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052
_UNICAST = IPv6Network("2000::/3")  # all IPv6 addresses that IANA has allocated for the public internet
_SPECIAL = (  # never a public server, though `is_global` of some Python versions says otherwise
    IPv4Network("192.0.0.0/24"),  # protocol assignments
    IPv4Network("192.88.99.0/24"),  # 6to4 relays, retired by RFC 7526
    IPv6Network("2001::/23"),  # protocol assignments, Teredo among them
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # documentation, RFC 9637
)


def reachable(address: Address, allow: tuple[Network, ...]) -> bool:
    """Whether an address is public or in one of the allowed networks."""
    address = _unfold(address)
    return _public(address) or any(address in network for network in allow)


def _unfold(address: Address) -> Address:
    """The IPv4 address inside an IPv6 address (mapped, RFC 4291, or NAT64), or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address


def _public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
