"""A switch in user space: links of a given rate and delay, where the kernel has no ``netem``.

Each host is joined to the switch by a link that carries ``rate`` bits a second in each direction.
A frame begins when the link of the sender and that of the receiver are both free, takes its
length over the rate, and arrives ``delay`` later. No frame is lost, however many wait.

An acknowledgement of TCP overtakes the frames that wait. The kernel gives a network card only as
much of a connection as it sends in a millisecond, so that little waits there; but it takes the
frames of a TAP device to be sent at once, so that megabytes wait here.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress

from tests.hosts import link

_FRAMES_IN_A_ROW = 64
"""Frames that are read from one host before the others are looked at."""


class Links:
    """Which frames are on their way, and when they arrive.

    Args:
        count: number of hosts.
        rate: bits a second of each link, in each direction.
        delay: seconds from the end of a frame at its sender to its arrival.
    """

    def __init__(self, count: int, rate: float, delay: float) -> None:
        self._seconds_a_byte = 8 / rate
        self._delay = delay
        self._out_free = [0.0] * count
        self._in_free = [0.0] * count
        self._count = count
        self._on_the_way: list[tuple[float, int, int, bytes]] = []
        """A heap of arrival, number of the frame, receiver and the frame."""
        self._numbers = itertools.count()

    def send(self, now: float, source: int, frame: bytes) -> None:
        """Begin a frame that a host sends."""
        for target in self._targets(source, frame):
            arrival = self._delay + self._end(now, source, target, frame)
            heapq.heappush(self._on_the_way, (arrival, next(self._numbers), target, frame))

    def _targets(self, source: int, frame: bytes) -> Sequence[int]:
        mac = frame[link.HEADER_SIZE : link.HEADER_SIZE + 6]
        if mac[:5] == link.MAC_PREFIX and 0 < mac[5] <= self._count:
            return (mac[5] - 1,)
        return [host for host in range(self._count) if host != source]

    def _end(self, now: float, source: int, target: int, frame: bytes) -> float:
        """Return when the last bit of a frame leaves its sender."""
        takes = (len(frame) - link.HEADER_SIZE) * self._seconds_a_byte
        if link.is_acknowledgement(frame):
            return now + takes
        leaves = max(now, self._out_free[source])
        end = max(leaves, self._in_free[target]) + takes
        self._out_free[source] = leaves + takes
        self._in_free[target] = end
        return end

    def next_arrival(self) -> float | None:
        """Return when the next frame arrives, None if none is on its way."""
        return self._on_the_way[0][0] if self._on_the_way else None

    def arrived(self, now: float) -> list[tuple[int, bytes]]:
        """Take out all frames that have arrived, each with its receiver."""
        found = []
        while self._on_the_way and self._on_the_way[0][0] <= now:
            _, _, target, frame = heapq.heappop(self._on_the_way)
            found.append((target, frame))
        return found


def run(links: Links, hosts: Sequence[int], ends: Sequence[int]) -> None:
    """Carry frames until something can be read from another file descriptor.

    Args:
        links: what joins the hosts.
        hosts: for each host the file descriptor of its frames.
        ends: the other file descriptors.
    """
    number = {descriptor: host for host, descriptor in enumerate(hosts)}
    now = time.monotonic
    while True:
        due = links.next_arrival()
        timeout = None if due is None else max(0.0, due - now())
        for descriptor in select.select([*hosts, *ends], [], [], timeout)[0]:
            if descriptor in number:
                _read(links, number[descriptor], descriptor)
            else:
                return
        for host, frame in links.arrived(now()):
            with suppress(OSError):  # the interface is down, or has no room: the frame is lost
                os.write(hosts[host], frame)


def _read(links: Links, host: int, descriptor: int) -> None:
    with suppress(BlockingIOError):
        for _ in range(_FRAMES_IN_A_ROW):
            frame = os.read(descriptor, link.MAX_FRAME_SIZE)
            links.send(time.monotonic(), host, frame)
