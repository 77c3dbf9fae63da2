"""Hosts on this machine: to a program each looks like a machine of its own in a network."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.hosts import folder

_ROOT = Path(__file__).parents[2]
_END_S = 10.0


class HostsError(RuntimeError):
    """Hosts cannot be made here."""


class Hosts:
    """Several hosts on this machine, joined by a switch; a context manager.

    Each host has its own name, which the others can look up, its own processes and their
    numbers, its own ``/dev/shm`` and ``/run``, its own network interface ``eth0`` with the
    address ``10.77.0.(host + 1)``, and its own ``CLOCK_MONOTONIC``, which is 1000 s times
    (host + 1) ahead of that of this machine. All other files are shared, and the time of day.

    All is gone when the context is left and when this process ends, by SIGKILL too.

    Args:
        count: number of hosts.
        rate: bits a second that a host can send, and receive.
        delay: seconds that a frame takes from one host to another, beside its length over
            the rate.

    Raises:
        HostsError: this process may not make hosts, or the kernel cannot.
    """

    def __init__(self, count: int = 4, rate: float = 1e9, delay: float = 1e-3) -> None:
        self._rate = rate
        self._delay = delay
        self._count = count
        self._firsts: list[int] = []

    def __enter__(self) -> Self:
        word, self.folder = folder.create()
        self.names = [f"{word}{host}" for host in range(self._count)]
        order = {
            "owner": os.getpid(),
            "folder": str(self.folder),
            "names": self.names,
            "rate": self._rate,
            "delay": self._delay,
        }
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.hosts.keeper", json.dumps(order)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for its owner
        )
        try:
            self._firsts = self._heard()["pids"]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """Have the keeper end, and wait until the hosts are gone."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        try:
            with suppress(BrokenPipeError):
                self._keeper.stdin.close()
            self._keeper.wait(_END_S)
        finally:
            self._keeper.kill()
            self._keeper.wait()
            self._keeper.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)  # where the keeper was killed
        deadline = time.monotonic() + _END_S
        while any(map(_is_alive, self._firsts)) and time.monotonic() < deadline:
            time.sleep(0.001)

    def _heard(self) -> dict[str, Any]:
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        said: dict[str, Any] = json.loads(line or '{"error": "the keeper of the hosts has ended"}')
        if "error" in said:
            raise HostsError(said["error"])
        return said

    # -- programs --------------------------------------------------------------------------------

    def on(self, host: int, *command: object) -> list[str]:
        """Return the command line, for this machine, of a command on a host.

        It has the environment, the folder and the standard files of the caller; only
        ``TMPDIR`` is the host's own. Its exit code is that of the command, which is killed when
        it is.
        """
        return [str(self.folder / "on"), self.names[host], *map(str, command)]

    @property
    def agent(self) -> Path:
        """A program to use in place of ssh, on each host: as with ssh, nothing is passed on
        but standard input, output and error, and the command may outlive it.
        """
        return self.folder / "ssh"

    def kill(self, host: int) -> None:
        """Kill all processes of a host; it stays and can run others."""
        while alive := self._processes(host):  # some start others meanwhile
            for os_pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(os_pid, signal.SIGKILL)
            time.sleep(0.001)

    # -- what is left ----------------------------------------------------------------------------

    def processes_left(self, host: int) -> list[str]:
        """Return the command lines of the processes of a host that have not ended."""
        return [_command_line(os_pid) for os_pid in self._processes(host)]

    def shared_memory_left(self, host: int) -> list[str]:
        """Return the names of the files in ``/dev/shm`` of a host."""
        return sorted(os.listdir(f"/proc/{self._firsts[host]}/root/dev/shm"))

    def _processes(self, host: int) -> list[int]:
        """Return the processes of a host that run or are stopped, but for its first one."""
        first = self._firsts[host]
        namespace = os.readlink(f"/proc/{first}/ns/pid")
        found = []
        for os_pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with suppress(OSError):
                is_here = os.readlink(f"/proc/{os_pid}/ns/pid") == namespace
                if is_here and os_pid != first and _is_alive(os_pid):
                    found.append(os_pid)
        return found


@functools.cache
def why_not() -> str:
    """Return why no hosts can be made here, in a sentence; empty if they can. It is tried."""
    try:
        with Hosts(count=2) as hosts:
            for host in range(2):
                subprocess.run(hosts.on(host, "true"), check=True, timeout=30)
    except (HostsError, OSError, subprocess.SubprocessError) as error:
        return f"hosts in namespaces of the kernel cannot be made here: {error}"
    return ""


def _state(os_pid: int) -> str:
    """Return the state of a process, as R, T or Z; empty if there is none."""
    try:
        return Path(f"/proc/{os_pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _is_alive(os_pid: int) -> bool:
    return _state(os_pid) not in ("", "X", "Z")


def _command_line(os_pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{os_pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()
    return ""
