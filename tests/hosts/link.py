"""The network interface of a host, ``eth0``, whose frames a process of the user handles.

It is a TAP device: what a program sends through it is read from a file descriptor, and what is
written to the file descriptor is received. Frames are up to 64 KiB long, as a network card that
cuts them into packets would get them; each has a header of :data:`HEADER_SIZE` bytes.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

DEVICE = "/dev/net/tun"
NAME = "eth0"
HEADER_SIZE = 10
MAX_FRAME_SIZE = HEADER_SIZE + 14 + 65536
MAC_PREFIX = b"\x02\x00\x00\x00\x77"
"""The addresses of the hosts of a switch differ in the last byte, which is host + 1."""

_TYPE = HEADER_SIZE + 12
_IP = HEADER_SIZE + 14
_IPV4 = b"\x08\x00"
_ACKNOWLEDGES = 0x10
"""The flag of TCP; a header has others when a connection begins or ends, or data are urgent."""

_CREATE, _OFFLOAD = 0x400454CA, 0x400454D0
_TAP, _NO_PROTOCOL, _WITH_HEADER = 0x0002, 0x1000, 0x4000
_CHECKSUM, _SEGMENT_4, _SEGMENT_6 = 1, 2, 4
_SET_ADDRESS, _SET_MASK, _SET_FLAGS, _SET_MAC = 0x8916, 0x891C, 0x8914, 0x8924
_SET_QUEUE, _SET_NEIGHBOUR = 0x8943, 0x8955
_UP = 0x1
_KNOWN_FOREVER = 0x2 | 0x4
_QUEUE_FRAMES = 10_000
_ETHERNET = 1
_IPV6_OFF = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")


def address(host: int) -> str:
    """Return the IP address of a host."""
    return f"10.77.0.{host + 1}"


def create(host: int, count: int) -> int:
    """Create the interface in the network namespace of this process, with all its neighbours.

    Args:
        host: number of this host.
        count: number of hosts of the switch.

    Returns:
        The file descriptor of the frames, which does not block.

    Raises:
        OSError: there is no ``/dev/net/tun``, or this process may not configure the network.
    """
    with suppress(FileNotFoundError):  # a kernel without IPv6
        _IPV6_OFF.write_text("1")
    frames = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(frames, _CREATE, _request("H", _TAP | _NO_PROTOCOL | _WITH_HEADER))
    fcntl.ioctl(frames, _OFFLOAD, _CHECKSUM | _SEGMENT_4 | _SEGMENT_6)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_MAC, _request("16s", _hardware(host)))
        fcntl.ioctl(any_socket, _SET_ADDRESS, _request("16s", _internet(address(host))))
        fcntl.ioctl(any_socket, _SET_MASK, _request("16s", _internet("255.255.255.0")))
        fcntl.ioctl(any_socket, _SET_QUEUE, _request("i", _QUEUE_FRAMES))
        for name in (NAME, "lo"):
            fcntl.ioctl(any_socket, _SET_FLAGS, _request("H", _UP, name))
        for other in range(count):
            if other != host:
                fcntl.ioctl(any_socket, _SET_NEIGHBOUR, _neighbour(other))
    return frames


def is_acknowledgement(frame: bytes) -> bool:
    """Tell whether a frame is one of TCP over IPv4 that acknowledges, and does nothing else."""
    if frame[_TYPE : _TYPE + 2] != _IPV4 or frame[_IP + 9] != socket.IPPROTO_TCP:
        return False
    header = 4 * (frame[_IP] & 0xF)
    tcp = _IP + header
    length = int.from_bytes(frame[_IP + 2 : _IP + 4])
    return length == header + 4 * (frame[tcp + 12] >> 4) and frame[tcp + 13] == _ACKNOWLEDGES


def _request(form: str, value: int | bytes, name: str = NAME) -> bytes:
    """Return a ``struct ifreq``."""
    return struct.pack(f"=16s{form}", name.encode(), value).ljust(40, b"\0")


def _internet(ip: str) -> bytes:
    return struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(ip))


def _hardware(host: int) -> bytes:
    return struct.pack("=H6s8x", _ETHERNET, MAC_PREFIX + bytes([host + 1]))


def _neighbour(host: int) -> bytes:
    """Return a ``struct arpreq``: nobody has to ask for this host's hardware address."""
    return struct.pack(
        "=16s16si16s16s",
        _internet(address(host)),
        _hardware(host),
        _KNOWN_FOREVER,
        b"",
        NAME.encode(),
    )
