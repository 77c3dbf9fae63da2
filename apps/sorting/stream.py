"""Reading and writing while computing, with memory for three jobs.

While one job is done the next one's data come from the disk and the last one's
go there. System calls leave other threads of Python alone, and so do numpy's sorts.
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
    """Return memory for three jobs, each from a page's beginning on, as disks want it."""
    return [np.frombuffer(_memory(max(nbytes, 1)), np.uint8) for _ in range(BUFFERS)]


def _memory(nbytes: int) -> mmap.mmap:
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # they are faster, and not everywhere
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def stream(
    jobs: Sequence[Job],
    buffers: Sequence[Buffer],
    read: Callable[[Job, Buffer], Any],
    work: Callable[[Job, Buffer], Any],
    write: Callable[[Job, Buffer], Any],
) -> None:
    """Do jobs one after the other; all have been written when it returns.

    Args:
        jobs: what is to be done.
        buffers: three; job i has number i mod 3.
        read: fills the buffer of a job; in another thread.
        work: does the job.
        write: writes what it made of the buffer; in another thread.

    Raises:
        Exception: what one of the three raised; nothing is left under way.

    Source: Chittor 1995, section 3.3, Figures 9 and 10.
    """
    reads: list[Future[Any]] = []
    writes: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:

        def prefetch(number: int) -> None:
            if number < len(jobs):
                if number >= BUFFERS:
                    writes[number - BUFFERS].result()  # it has left this buffer
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
