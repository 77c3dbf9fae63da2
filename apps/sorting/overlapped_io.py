"""Reads and writes during computation, with memory for three jobs.

While one job is computed, the data of the next are read from the disk and those of the last
are written. System calls and numpy's sorts release Python's global lock, so that threads
run at the same time.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Buffer = NDArray[Any]
Job = TypeVar("Job")
BUFFERS = 3


def make_buffers(nbytes: int) -> list[NDArray[np.uint8]]:
    """Return memory for three jobs, aligned to pages as direct access to disks requires."""
    return [np.frombuffer(_memory(max(nbytes, 1)), np.uint8) for _ in range(BUFFERS)]


def _memory(nbytes: int) -> mmap.mmap:
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # huge pages are faster, but not always available
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def stream(
    jobs: Sequence[Job],
    buffers: Sequence[Buffer],
    read: Callable[[Job, Buffer], Any],
    work: Callable[[Job, Buffer], Any],
    write: Callable[[Job, Buffer], Any],
) -> None:
    """Do jobs one after another; all results have been written when this returns.

    Args:
        jobs: the jobs.
        buffers: three buffers; job i uses number i mod 3.
        read: fills the buffer of a job; called in another thread.
        work: does the job.
        write: writes the result from the buffer; called in another thread.

    Raises:
        Exception: an error of one of the three functions, after all threads have finished.

    Source: Chittor 1995, section 3.3, Figures 9 and 10.
    """
    reads: list[Future[Any]] = []
    writes: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:

        def prefetch(number: int) -> None:
            if number < len(jobs):
                if number >= BUFFERS:
                    writes[number - BUFFERS].result()  # wait until this buffer is written
                reads.append(reader.submit(read, jobs[number], buffers[number % BUFFERS]))

        prefetch(0)
        for number, job in enumerate(jobs):
            reads[number].result()
            prefetch(number + 1)
            buffer = buffers[number % BUFFERS]
            work(job, buffer)
            writes.append(writer.submit(write, job, buffer))
        for written in writes:
            written.result()
