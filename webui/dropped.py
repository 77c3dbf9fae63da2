"""Trace files that a reader drops on the page: read at once, and kept in memory only."""

from __future__ import annotations

import shutil
import tempfile
import threading
from typing import IO

from bsplib.errors import BspError, TraceError
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace
from bsplib.visible import visible

MAX_FILE_BYTES = 256 * 2**20
"""Greatest size of a file; ``drop.js`` states the same number."""
MAX_ALL_BYTES = 2**30
"""Greatest size of all files that were dropped on the pages of one server."""
MAX_NAME = 100


class DroppedError(BspError):
    """A file that was dropped on the page is not accepted."""


class DroppedFiles:
    """Reads dropped files, and limits their size. Threads may share it."""

    def __init__(self) -> None:
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, stream: IO[bytes], name: str) -> tuple[Trace, str]:
        """Return the trace in a stream, and its name in a form that is safe to show.

        Raises:
            DroppedError: it is no trace, or larger than allowed.
        """
        name = visible(name.replace("\\", "/").rpartition("/")[2])[:MAX_NAME] or "dropped trace"
        with self._lock, tempfile.NamedTemporaryFile(suffix=".bsp") as file:
            shutil.copyfileobj(stream, file)
            size = file.tell()
            file.flush()
            if size > MAX_FILE_BYTES or self._bytes + size > MAX_ALL_BYTES:
                raise DroppedError(
                    f"{name} has {size} bytes: a dropped file may have {MAX_FILE_BYTES}, and all "
                    f"together {MAX_ALL_BYTES}; give larger ones to bsp view."
                )
            try:
                trace = read_trace(file.name)
            except TraceError as error:
                raise DroppedError(str(error).replace(file.name, name)) from None
            self._bytes += size
        return trace, name
