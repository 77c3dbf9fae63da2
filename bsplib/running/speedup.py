"""The speedup of a script on virtual processors: T(1)/T(P), where both runs are done.

The total computation of a parallel program is not the time of one processor: with one
process a program sends nothing, sorts in one piece, and takes another path. So the
script is run once more with nprocs = 1 on the same Machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO

from bsplib.backends import table as backends
from bsplib.backends.launching import Times
from bsplib.running.overrides import current, overriding

_Say = Callable[[str], object]
_Run = Callable[[], None]


def run_with_speedup(run: _Run, say: _Say) -> None:
    """Run a script, then run it on one processor, and print the speedup of each of its runs.

    The second time nothing is recorded, and what the script prints is dropped; files
    that it writes are written again.

    Args:
        run: runs the script; ``sys.argv`` is set already.
        say: called with each line to be printed.

    Raises:
        BaseException: what the script raised the first time.
    """
    parallel: list[Times] = []
    status = _run(run, parallel)
    if status is not None and status.code not in (None, 0):
        raise status
    for line in _compared(run, parallel):
        say(line)
    if status is not None:
        raise status


def _run(run: _Run, times: list[Times]) -> SystemExit | None:
    """Run a script and keep its virtual times; return how it exited, if it did."""
    before = current().report_times

    def report(each: Times) -> None:
        times.append(each)
        if before is not None:
            before(each)

    try:
        with overriding(report_times=report):
            run()
    except SystemExit as status:
        return status
    return None


def _compared(run: _Run, parallel: Sequence[Times]) -> list[str]:
    """Return a line for each run of the script, or one that says why there is no speedup."""
    if not parallel:
        option = " or ".join(f"--backend {name}" for name in backends.virtual_names())
        return [f"no speedup: the script ran nothing on virtual processors; use {option}"]
    alone: list[Times] = []
    if (reason := _run_alone(run, alone)) is not None:
        return [f"no speedup: with nprocs = 1 the script {reason}"]
    if len(alone) != len(parallel):
        return [
            f"no speedup: with nprocs = 1 the script made {len(alone)} runs on virtual processors "
            f"instead of {len(parallel)}"
        ]
    return [_line(*pair) for pair in zip(alone, parallel, strict=True)]


def _run_alone(run: _Run, times: list[Times]) -> str | None:
    """Run a script with one process; return why it did not end well, or None."""
    silent = overriding(nprocs=1, profile=None, records=False, report_times=None, label=False)
    try:
        with silent, redirect_stdout(StringIO()):
            status = _run(run, times)
    except Exception as error:  # noqa: BLE001  # any error means only that there is no speedup
        return f"ended by {type(error).__name__}: {error}"
    if status is not None and status.code not in (None, 0):
        return f"exited with status {status.code!r}"
    return None


def _line(alone: Times, parallel: Times) -> str:
    if not parallel.parallel_s:
        return "no speedup: the run took no virtual time"
    ratio = alone.parallel_s / parallel.parallel_s
    return (
        f"speedup: T(1) {alone.parallel_s:.4g} s / T(P) {parallel.parallel_s:.4g} s = {ratio:.3g}"
    )
