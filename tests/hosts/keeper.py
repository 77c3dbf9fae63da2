"""The process that makes the hosts, is their switch, and ends with its owner.

Nothing stays when it ends, even by SIGKILL: the kernel then kills the first process of each host,
with it all others of the host, and removes namespaces and interfaces, which have no other
names. Only the folder with the sockets of the hosts can be left, if the owner is killed in the same
moment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.hosts import host, kernel, link, switch

_PRIORITY = 10
_CLOCK_STEP_S = 1000


class Kept(NamedTuple):
    """A host: its first process, and the frames of its interface."""

    os_pid: int
    frames: int


def main() -> None:
    """Keep hosts until the owner says that it is the end, or ends."""
    order = json.loads(sys.argv[1])
    owner = os.pidfd_open(order["owner"])
    if os.getppid() != order["owner"]:
        return
    place = Path(order["folder"])
    try:
        try:
            kept = make_all(order["names"], place)
            say(pids=[each.os_pid for each in kept])
        except OSError as error:
            say(error=str(error))
            return
        links = switch.Links(len(kept), order["rate"], order["delay"])
        hurry()
        ends = [sys.stdin.fileno(), owner]  # the owner closes the one, or ends
        switch.run(links, [each.frames for each in kept], ends)
        for each in kept:
            os.kill(each.os_pid, signal.SIGKILL)
        for each in kept:
            os.waitpid(each.os_pid, 0)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def say(**what: object) -> None:
    """Tell the owner something."""
    print(json.dumps(what), flush=True)


def hurry() -> None:
    """Let no process of a host keep the switch from the core, as it keeps none in a network."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))


def make_all(names: Sequence[str], place: Path) -> list[Kept]:
    """Make the hosts.

    Raises:
        OSError: this process may not do so.
    """
    known = "".join(f"{link.address(i)} {name}\n" for i, name in enumerate(names))
    (place / "names").write_text("127.0.0.1 localhost\n" + known)
    return [make(names, number, place) for number in range(len(names))]


def make(names: Sequence[str], number: int, place: Path) -> Kept:
    """Make a host, with a clock that is ahead of this one by a time of its own.

    Raises:
        OSError: this process may not do so.
    """
    own = Path("/proc/self/ns")
    kernel.leave("pid", "time")  # the next child is in them, and not this process
    ahead_s = _CLOCK_STEP_S * (number + 1)
    Path("/proc/self/timens_offsets").write_text(f"monotonic {ahead_s} 0\nboottime {ahead_s} 0\n")
    here, there = socket.socketpair()
    os_pid = os.fork()
    if not os_pid:
        here.close()
        be_host(there, names, number, place)
    there.close()
    for kind in ("pid", "time"):
        kernel.enter(own / kind)
    with here:
        said, descriptors, _, _ = socket.recv_fds(here, 1000, 1)
    if not descriptors:
        raise OSError(f"a host cannot be made: {said.decode() or 'its first process ended'}")
    os.set_inheritable(descriptors[0], False)
    os.set_blocking(descriptors[0], False)
    return Kept(os_pid, descriptors[0])


def be_host(keeper: socket.socket, names: Sequence[str], number: int, place: Path) -> None:
    """Be the first process of a host until this is killed."""
    try:
        kernel.end_with_parent()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place / names[number]))
            listener.listen()
            frames = host.set_up(names[number], number, len(names), place / "names")
            server = host.Server(listener)
            with keeper:
                socket.send_fds(keeper, [b"ready"], [frames])  # fails if the keeper has ended
            os.close(frames)
            server.serve()
    except BaseException as error:  # noqa: BLE001 - no exception leaves a forked process
        if keeper.fileno() < 0:
            traceback.print_exc()
        else:
            with suppress(OSError):
                keeper.sendall(str(error).encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
