"""Files in /dev/shm by which an MPI shares memory inside a host.

The library removes them when a rank leaves MPI in peace. Where ranks are killed, their watchers
remove them. The one of MPICH is removed as soon as all ranks have mapped it, since the launcher of
MPICH kills watchers, too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

_MAPPED = re.compile(
    r"/dev/shm/(?:mpich_shm_|sm_segment\.|vader_segment\.|Intel_MPI_|psm[23]_shm)\S*"
)
"""Names that MPICH, Open MPI, Intel MPI and the libraries below them give such files."""

_ONLY_AT_START = "/dev/shm/mpich_shm_"


def mapped_by(os_pid: int) -> set[str]:
    """Return the paths of those that a process has mapped; none where it has ended."""
    try:
        maps = Path(f"/proc/{os_pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(_MAPPED.findall(maps))


def remove_mapped() -> None:
    """Remove the names that nobody needs once all ranks have joined."""
    remove(path for path in mapped_by(os.getpid()) if path.startswith(_ONLY_AT_START))


def remove(paths: Iterable[str]) -> None:
    """Remove files, as far as they are there."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
