"""Starting a run over shared memory."""

from __future__ import annotations

from bsplib.backends.launching import Options, Report, Work
from bsplib.backends.shm.processes import Processes
from bsplib.backends.signals import held_back


def launch(work: Work, options: Options) -> Report:
    """Do some work in new processes; see :attr:`Backend.launch`."""
    with held_back():
        processes = keep(options)
        try:
            return processes.run_once(work, options.timeout)
        except BaseException:
            processes.stop()
            raise
        finally:
            processes.close()


def keep(options: Options) -> Processes:
    """Make processes that are kept; see :attr:`Backend.keep`."""
    return Processes(options.nprocs, options.start_method, options.wait_by)
