"""Starting a run on the ranks of an MPI."""

from __future__ import annotations

import atexit
import os
import threading

from bsplib.backends.launching import KeptProcesses, NothingKept, Options, Report, Work
from bsplib.backends.mpi import bsp_run_under_mpiexec, program_under_mpiexec
from bsplib.backends.mpi.installations import Starter, chosen
from bsplib.backends.mpi.job import Job
from bsplib.backends.signals import held_back
from bsplib.extras import need

_turn = threading.Lock()
_kept: list[Job] = []
"""At most one job, which waits for the next run of this process."""


def launch(work: Work, options: Options) -> Report:
    """Do some work in the first ranks of a job; see :attr:`Backend.launch`."""
    need("mpi4py")
    if bsp_run_under_mpiexec.current is not None:
        with held_back():
            return bsp_run_under_mpiexec.current.run_on(options.nprocs, work, options.timeout)
    with held_back():
        job = _take(options.nprocs, chosen(options.nprocs)) or _new(options.nprocs)
        try:
            if not job.started:
                job.start()
            report = job.run_on(options.nprocs, work, options.timeout)
        except BaseException:
            job.stop()
            job.close()
            raise
        _put_back(job)
        return report


def keep(options: Options) -> KeptProcesses:
    """Make processes that are kept; see :attr:`Backend.keep`."""
    need("mpi4py")
    job = bsp_run_under_mpiexec.current
    if job is None and program_under_mpiexec.current is None:
        return _new(options.nprocs)

    def run(work: Work, timeout: float | None) -> Report:
        assert job is not None  # rank 0 runs it
        return job.run_on(options.nprocs, work, timeout)

    return NothingKept(run)


def _new(nprocs: int) -> Job:
    return Job(nprocs, chosen(nprocs))


def _take(nprocs: int, starter: Starter) -> Job | None:
    """Take the job that waits, where it has enough ranks and was started in the same way."""
    with _turn:
        job = _kept.pop() if _kept else None
    if job is None:
        return None
    sound = job.is_sound()
    if sound and job.fits(nprocs, starter):
        return job
    if not sound:  # its ranks cannot leave MPI in peace
        job.stop()
    job.close()
    return None


def _put_back(job: Job) -> None:
    """Keep a job for the next run, if it can be used and none is kept already."""
    with _turn:
        if job.usable and not _kept:
            _kept.append(job)
            return
    job.close()


def end_kept() -> None:
    """End the job that waits for the next run."""
    with _turn:
        jobs, _kept[:] = _kept[:], []
    for job in jobs:
        job.close()


def _forget() -> None:
    """In a forked process: the job belongs to its parent."""
    global _turn  # noqa: PLW0603  # it may be held by another thread of the parent
    _turn = threading.Lock()
    _kept.clear()


atexit.register(end_kept)
os.register_at_fork(after_in_child=_forget)
