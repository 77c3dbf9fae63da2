"""Run a command on a host: ``agent.py on|ssh FOLDER HOST COMMAND...``.

``on``: the command has the arguments, the environment and the folder of the caller, and is killed
when this process is.

``ssh``: as the program of this name, options before the host included. The words are a command
line for a shell, which has an environment of its own and is not killed with this process.

Standard input, output and error are those of the caller. This file is run alone, hence it
imports nothing of the project.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from contextlib import suppress

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
        try:
            connection.connect(f"{folder}/{host}")
        except OSError as error:
            sys.exit(f"{host} cannot be reached: {error.strerror}")
        ask(connection, request)
        sys.exit(answer(connection))


def ask(connection: socket.socket, request: dict[str, object]) -> None:
    """Send the request with the standard file descriptors."""
    text = json.dumps(request).encode()
    socket.send_fds(connection, [struct.pack("=I", len(text))], [0, 1, 2])
    connection.sendall(text)


def answer(connection: socket.socket) -> int:
    """Return the exit code of the command once it has ended, as a shell tells it."""
    with suppress(ConnectionError):
        status = connection.recv(4, socket.MSG_WAITALL)
        if len(status) == 4:
            (code,) = struct.unpack("=i", status)
            return int(code) if code >= 0 else 128 - int(code)
    return _LOST


if __name__ == "__main__":
    main()
