"""Run a command on a host: ``agent.py on|ssh FOLDER HOST COMMAND...``.

``on``: the command has the arguments, the environment and the folder of the caller. Signals are
passed on to it, and it is killed when this process is.

``ssh``: as the program of this name, options before the host included. The words are a command
line for a shell, which has an environment of its own and is not killed with this process.

Standard input, output and error are those of the caller. This file is run alone, hence it
imports nothing of the project.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Collection
from contextlib import suppress

PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_LOST = 255
"""The status of ssh if the connection is lost."""


def main() -> None:
    """Run what the command line says, and end as it does."""
    way, folder, *words = sys.argv[1:]
    while way == "ssh" and words and words[0].startswith("-"):
        del words[0]
    if len(words) < 2:
        sys.exit(__doc__)
    host, *command = words
    is_ssh = way == "ssh"
    request: dict[str, object] = {
        "command": ["/bin/sh", "-c", " ".join(command)] if is_ssh else command,
        "environment": None if is_ssh else dict(os.environ),
        "folder": None if is_ssh else os.getcwd(),
        "is_left": is_ssh,
    }
    with socket.socket(socket.AF_UNIX) as connection:
        caught = () if is_ssh else PASSED_ON
        signals = caught_signals(caught)
        try:
            connection.connect(f"{folder}/{host}")
        except OSError as error:
            sys.exit(f"{host} cannot be reached: {error.strerror}")
        ask(connection, request)
        end_as(answer(connection, signals))


def caught_signals(numbers: Collection[int]) -> socket.socket:
    """Return where the numbers of the signals that this process gets can be read, a byte each.

    A handler in Python would not do: a signal just before a call that waits runs it too late.
    """
    signals, written = socket.socketpair()
    written.setblocking(False)
    signal.set_wakeup_fd(written.detach())
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return signals


def ask(connection: socket.socket, request: dict[str, object]) -> None:
    """Send the request with the standard file descriptors."""
    text = json.dumps(request).encode()
    socket.send_fds(connection, [struct.pack("=I", len(text))], [0, 1, 2])
    connection.sendall(text)


def answer(connection: socket.socket, signals: socket.socket) -> int:
    """Pass signals on until the command has ended; return its exit code."""
    with suppress(ConnectionError):
        while connection not in (readable := select.select([connection, signals], [], [])[0]):
            for each in readable:
                connection.sendall(each.recv(100))
        status = connection.recv(4, socket.MSG_WAITALL)
        if len(status) == 4:
            (code,) = struct.unpack("=i", status)
            return int(code)
    return _LOST


def end_as(code: int) -> None:
    """End with an exit code, or by the signal that killed the command."""
    if code >= 0:
        sys.exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main()
