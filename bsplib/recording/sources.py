"""The source files that a run came through, and the digests by which they are known again.

A trace holds the names of files, not their content. With the digest of each file, a reader
of the trace can tell whether a file of that name is the one that ran.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from bsplib.output_file import special_kind
from bsplib.recording.records import MAX_TEXT, Run

MAX_FILE_BYTES = 4 * 2**20
"""A longer file is not read."""
_SUFFIXES = (".py", ".pyw")


def digest(content: bytes) -> str:
    """Return the digest of a file with this content: SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def with_digests(run: Run, started_s: float) -> Run:
    """Return a run with the digests of the source files that it names and that are here.

    A file that was changed after the start of the run may not be what ran: it has no digest.

    Args:
        run: it was recorded on this computer.
        started_s: when it started, in seconds since 1970.
    """
    found = {}
    for name in {frame.file for stack in run.stacks for frame in stack}:
        try:
            path = located(name, run.meta.get("folder"))
            if len(name) <= MAX_TEXT and path.stat().st_mtime <= started_s:
                found[name] = digest(content(path))
        except (OSError, ValueError):  # it is not here, or no file at all
            continue
    # The tables are not read.
    return replace(run, records=run.table("records"), traffic=run.table("traffic"), sources=found)


def located(name: str, folder: object) -> Path:
    """Return the path of a source file.

    Args:
        name: as in a stack.
        folder: where a relative name begins; what is no text counts as the current folder.

    Raises:
        OSError: it does not look like a Python program.
    """
    if not name.endswith(_SUFFIXES):
        raise OSError("its name does not end in .py")
    return Path(folder if isinstance(folder, str) else "", name)


def content(path: Path) -> bytes:
    """Return the content of a source file.

    Raises:
        OSError: there is no such file, or it is not to be read.
        ValueError: there is a NUL in its name.
    """
    if kind := special_kind(path):
        raise OSError(f"it is {kind}")
    with path.open("rb") as file:
        read = file.read(MAX_FILE_BYTES + 1)
    if len(read) > MAX_FILE_BYTES:
        raise OSError("it is longer than 4 MiB")
    return read
