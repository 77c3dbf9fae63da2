"""The first process of a host: it sets the host up, and runs there what :mod:`agent` asks for.

The host is a set of namespaces. This process is number 1 in its process namespace, hence the
kernel kills all processes of the host when it ends, and removes the rest.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.hosts import kernel, link

OWN_FOLDERS = ("/dev/shm", "/run")
"""These are empty and the host's own; all other folders are shared, as by NFS."""
TMPDIR = "/run"
_REQUEST_S = 10.0
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
_NOT_FOUND = 127


def set_up(name: str, host: int, count: int, names_file: Path) -> int:
    """Make this process, the first of a new process namespace, a host.

    Args:
        name: host name.
        host: its number.
        count: number of hosts.
        names_file: what is its ``/etc/hosts``.

    Returns:
        The file descriptor of the frames of its interface.

    Raises:
        OSError: this process may not do so.
    """
    kernel.leave("mnt", "uts", "ipc", "net")
    socket.sethostname(name)
    kernel.mount("none", "/", flags=kernel.PRIVATE_EVERYWHERE)
    kernel.mount("proc", "/proc", "proc")
    kernel.mount("sysfs", "/sys", "sysfs")  # it names the interfaces of its network namespace
    for folder in OWN_FOLDERS:
        kernel.mount("tmpfs", folder, "tmpfs")
    kernel.mount(str(names_file), "/etc/hosts", flags=kernel.BIND)
    return link.create(host, count)


class Server:
    """Runs commands for those who connect.

    A request is its length in 4 bytes and a JSON object, with the three standard file
    descriptors of the command. The answer is the exit code of the command in 4 bytes; negative: the
    signal that killed it.

    Args:
        listener: where one connects.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._commands: dict[int, tuple[socket.socket, bool]] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = listener
        self._woken, waker = socket.socketpair()
        self._waker = waker
        waker.setblocking(False)
        self._woken.setblocking(False)

    def serve(self) -> None:
        """Run commands for ever."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._watch(self._listener, self._accept)
        self._watch(self._woken, self._reap)
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _watch(self, what: socket.socket, then: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, then)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_S)
        descriptors: list[int] = []
        try:
            request = _read_request(connection, descriptors)
            os_pid = _spawn(request, descriptors)
        except (OSError, EOFError, ValueError):
            _answer(connection, _NOT_FOUND)
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._commands[os_pid] = connection, bool(request["is_left"])
        self._watch(connection, lambda: self._lose(connection, os_pid))

    def _lose(self, connection: socket.socket, os_pid: int) -> None:
        """Kill a command whose caller has ended, unless it may outlive it."""
        if os_pid not in self._commands:
            return  # it has just ended
        self._selector.unregister(connection)
        connection.close()
        _, is_left = self._commands.pop(os_pid)
        if not is_left:
            os.kill(os_pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Answer for the commands that have ended; orphans of the host end here, too."""
        with suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._end(*ended)

    def _end(self, os_pid: int, status: int) -> None:
        if os_pid in self._commands:
            connection, _ = self._commands.pop(os_pid)
            self._selector.unregister(connection)
            _answer(connection, os.waitstatus_to_exitcode(status))


def _read_request(connection: socket.socket, descriptors: list[int]) -> dict[str, Any]:
    start, received, _, _ = socket.recv_fds(connection, 4, 3)
    descriptors += received
    if len(start) < 4 or len(received) < 3:
        raise EOFError
    (left,) = struct.unpack("=I", start)
    text = b""
    while len(text) < left:
        some = connection.recv(left - len(text))
        if not some:
            raise EOFError
        text += some
    request: dict[str, Any] = json.loads(text)
    return request


def _spawn(request: dict[str, Any], descriptors: list[int]) -> int:
    environment = (request["environment"] or _login_environment()) | {"TMPDIR": TMPDIR}
    command: list[str] = request["command"]
    os.chdir(request["folder"] or environment["HOME"])
    program = shutil.which(command[0], path=environment.get("PATH", _SYSTEM_PATH))
    if program is None:
        sentence = f"{socket.gethostname()}: there is no command {command[0]}\n"
        os.write(descriptors[2], sentence.encode())
        raise FileNotFoundError(command[0])
    standard = [(os.POSIX_SPAWN_DUP2, each, to) for to, each in enumerate(descriptors)]
    closed = [(os.POSIX_SPAWN_CLOSE, each) for each in descriptors]
    return os.posix_spawn(
        program,
        command,
        environment,
        file_actions=[*standard, *closed],
        setsid=True,
        setsigdef=_SIGNALS,
        setsigmask=(),
    )


def _login_environment() -> dict[str, str]:
    """Return what a command that ssh starts has; nothing of the caller's is in it."""
    return {"PATH": _SYSTEM_PATH, "HOME": os.environ.get("HOME", "/"), "SHELL": "/bin/sh"}


def _answer(connection: socket.socket, code: int) -> None:
    with suppress(OSError):
        connection.sendall(struct.pack("=i", code))
    connection.close()
