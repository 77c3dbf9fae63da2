"""Where a process writes its records, and how they come to the caller.

A process writes into the folder beside the trace where it can see that folder: on the
caller's host, or where the hosts share a file system. Elsewhere it makes a **part**: a folder
``bsp-part-RUN-PID`` for temporary files on its own host. When the run has ended there, the
content of the part is sent to the caller with the report of the process, and the part is removed.
Where the process was killed, the part stays, and ``bsp recover`` makes a trace of all parts.

A process needs the memory for its part once when it sends it, and the caller for the parts of
all processes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from bsplib.recording.record_folder import FILES, About, lock_if_possible, remove, write_about
from bsplib.recording.records import RECORD, TRAFFIC
from bsplib.recording.spool import HEADER

PREFIX = "bsp-part-"
_MARK = b"bsp part"
"""Beginning of a report with a part; that of a pickle is another one."""
_SIZES = Struct(f"<{1 + len(FILES)}Q")
"""Bytes of the report itself, and of the files of the part in the order of ``FILES``."""


class Destination(NamedTuple):
    """Where the processes of a run write their records."""

    folder: Path
    """Folder beside the trace, on the caller's host."""
    about: About
    """Description of the run."""

    def part(self, pid: int) -> Path:
        """Return the folder of a process that cannot see the folder of the caller."""
        import tempfile  # noqa: PLC0415  # most processes see the folder of their caller

        return Path(tempfile.gettempdir()) / f"{PREFIX}{self.about['run']}-{pid}"


def can_see(folder: Path) -> bool:
    """Tell whether this process can write into the folder that the caller has made.

    On a host without it there is no other folder of its name, a part of which is random.
    """
    return os.access(folder, os.W_OK | os.X_OK)


@contextmanager
def opened(destination: Destination, pid: int) -> Iterator[Path]:
    """Yield the folder into which a process writes its records.

    A folder that cannot be made is left out: then its files cannot be created either, and
    the process does not record.
    """
    if can_see(destination.folder):
        yield destination.folder
        return
    part = destination.part(pid)
    lock = None
    with contextlib.suppress(OSError):
        part.mkdir(mode=0o700)
        lock = lock_if_possible(part)
        write_about(part, destination.about)
    try:
        yield part
    finally:
        if lock is not None:
            os.close(lock)


def with_part(report: bytes, destination: Destination, pid: int) -> bytes:
    """Return the report of a process with its part, if it has one, which is removed.

    Without room in memory, the part stays where it is.
    """
    part = destination.part(pid)
    if not part.is_dir():
        return report
    try:
        files = [_content(part, pid, file) for file in FILES]
        sizes = _SIZES.pack(len(report), *map(len, files))
        whole = b"".join([_MARK, sizes, report, *files])
    except (OSError, MemoryError):
        return report
    remove(part, destination.about["nprocs"])
    return whole


def _content(part: Path, pid: int, file: str) -> bytes:
    """Return the content of a file; of a table, only the rows that are complete."""
    row = {"records": RECORD.itemsize, "traffic": TRAFFIC.itemsize}.get(file)
    path = part / f"{pid}.{file}"
    if not path.exists():
        return b""
    with path.open("rb") as opened_file:
        if row is None:
            return opened_file.read()
        header = opened_file.read(HEADER.size)
        if len(header) < HEADER.size:
            return header
        count, _ = HEADER.unpack(header)
        return header + opened_file.read(count * row)


def received(whole: bytes, destination: Destination | None, pid: int) -> bytes | memoryview:
    """Return the report of a process; write its part, if one came with it, beside the trace.

    Where the part cannot be written, the error stands in its place, for
    :func:`bsplib.recording.collect.collect`.
    """
    if destination is None or not whole.startswith(_MARK):
        return whole
    content = memoryview(whole)[len(_MARK) :]
    report_bytes, *sizes = _SIZES.unpack_from(content)
    first = _SIZES.size + report_bytes
    try:
        for file, size in zip(FILES, sizes, strict=True):
            (destination.folder / f"{pid}.{file}").write_bytes(content[first : first + size])
            first += size
    except OSError as error:
        with contextlib.suppress(OSError):
            lost = HEADER.pack(0, error.errno or 0)
            (destination.folder / f"{pid}.{FILES[0]}").write_bytes(lost)
    return content[_SIZES.size : _SIZES.size + report_bytes]
