"""Names of this host's interfaces, their addresses and speeds, as far as the system tells them."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

_ADDRESS_OF = 0x8915  # SIOCGIFADDR of Linux


def interfaces() -> dict[str, str]:
    """Return the IPv4 address of each interface that has one; empty where the system is not Linux."""
    found: dict[str, str] = {}
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):
                    packed = fcntl.ioctl(asking, _ADDRESS_OF, struct.pack("256s", name.encode()[:15]))
                    found[name] = socket.inet_ntoa(packed[20:24])
    return found


def address_towards(host: str, port: int) -> str:
    """Return the own address from which packets to a host leave; empty if there is no way to it. Sends nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((host, port or 9))
        return str(asking.getsockname()[0])
    return ""


def own_name_resolved() -> str:
    """Return the address that this host's own name resolves to; empty if it does not."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def is_here(host: str) -> bool | None:
    """Whether an address belongs to this host; None if the name does not resolve."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return None
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trying:
            trying.bind((address, 0))
    except OSError:
        return False
    return True


def chosen(named: str, available: Mapping[str, str]) -> list[str]:
    """Return the interfaces that NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names.

    Args:
        named: names or prefixes with commas; behind ``=`` names only, behind ``^`` those not to be taken.
        available: interfaces of this host.
    """
    found = re.match(r"(\^?=?)(.*)", named)
    signs, listed = (found[1], found[2]) if found is not None else ("", named)
    wanted = [part.strip() for part in listed.split(",") if part.strip()]

    def fits(name: str) -> bool:
        return any(name == part if "=" in signs else name.startswith(part) for part in wanted)

    return [name for name in available if fits(name) is not ("^" in signs)]


def speed_of(interface: str) -> float | None:
    """Return what a link is made for, in bytes per second; None if the system does not say, as of a loopback."""
    try:
        megabits = int((Path("/sys/class/net") / interface / "speed").read_text())
    except (OSError, ValueError):
        return None
    return megabits * 1e6 / 8 if megabits > 0 else None
