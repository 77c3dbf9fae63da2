"""Runs whose experiments are measured: of one script or function, and of whole grids.

From Python::

    from bsplib.experiments.runs import measured

    with measured("fft.jsonl"):
        bsplib.run(main, 1024, nprocs=4)
"""

from __future__ import annotations

import json
import os
import platform
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.directions import is_out
from bsplib.errors import TraceError, UsageError
from bsplib.experiments import comments, datafile
from bsplib.experiments.blocks import BlockSample, Samples
from bsplib.experiments.grid import Number
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from bsplib.running.overrides import MeasuredRun, overriding
from bsplib.sync_kinds import Kind

SEED = "seed"
"""The parameter of ``main`` that is given the number of a seed."""


@contextmanager
def measured(path: str | os.PathLike[str], *, cll: bool = False) -> Iterator[list[datafile.Row]]:
    """Measure the experiments of all runs inside the ``with`` block, and add them to a file.

    Args:
        path: the data file; it is made if it is missing.
        cll: comments of the form ``#cll`` count in modules that are imported from now on.

    Yields:
        The list of what was measured, which grows with each run.

    Raises:
        UsageError: the file cannot be written, at the end of the block.
    """
    with collected(cll=cll) as rows:
        yield rows
        if rows:
            datafile.append(Path(path), rows)


@contextmanager
def collected(
    about: Mapping[str, Any] | None = None, *, cll: bool = False, **overrides: Any
) -> Iterator[list[datafile.Row]]:
    """Collect what the experiments of all runs inside the ``with`` block take.

    Args:
        about: what each line says of its run besides what is known.
        cll: comments of the form ``#cll`` count.
        **overrides: for :class:`bsplib.running.overrides.Overrides`.
    """
    rows: list[datafile.Row] = []
    known = {"id": uuid.uuid4().hex, "of": 0, "host": platform.node()} | dict(about or {})
    numbers = iter(range(1 << 62))

    def keep(found: MeasuredRun) -> None:
        setting = found.setting
        run = known | {
            "nprocs": setting.nprocs,
            "backend": setting.backend,
            "machine": setting.machine.name,
            "program": found.program,
            "number": next(numbers),
        }
        h = None if found.trace is None else h_of_samples(found.trace, found.samples)
        rows.extend(datafile.rows_of(found.samples, run, h))
        dropped = sum(each.dropped for each in found.samples)
        if dropped:
            print(f"experiments: {dropped} passages were too many and are lost", file=sys.stderr)

    with overriding(measured=keep, cll=cll, **overrides):
        if cll:
            comments.install()
        try:
            yield rows
        finally:
            if cll:
                comments.uninstall()


@dataclass(frozen=True)
class Turn:
    """One execution of a script."""

    nprocs: int | None
    """None: what the script says."""
    values: Mapping[str, Number]
    repeat: int

    def __str__(self) -> str:
        named = [f"{name}={value}" for name, value in self.values.items()]
        return " ".join([*([f"-n {self.nprocs}"] if self.nprocs else []), *named]) or "as it is"


@dataclass(frozen=True)
class Sweep:
    """A script, and how to run it."""

    script: str
    arguments: tuple[str, ...] = ()
    """Its command line; ``{N}`` stands for the value of N."""
    cll: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """For :class:`bsplib.running.overrides.Overrides`: ``backend``, ``machine``, ``timeout``."""

    def named(self, turn: Turn) -> dict[str, Any]:
        """Return what tells an execution from others, for the data file."""
        machine = self.overrides.get("machine")
        return {
            "script": os.path.basename(self.script),
            "arguments": list(self.arguments),
            "cll": self.cll,
            "nprocs": turn.nprocs,
            "backend": self.overrides.get("backend"),
            "machine": None if machine is None else machine.name,
            "set": dict(turn.values),
            "repeat": turn.repeat,
        }

    def execute(self, turn: Turn) -> list[datafile.Row]:
        """Run the script once, without its output; return what its experiments took.

        Raises:
            UsageError: a value is used neither by ``main`` nor in the arguments, nothing was
                measured, or the comments cannot be used.
            BaseException: what the script raises.
        """
        about = {"turn": self.named(turn)}
        used: set[str] = set()
        more = {"nprocs": turn.nprocs, "arguments": turn.values, "called": used.update}
        more |= self.overrides
        before = sys.argv
        sys.argv = [self.script, *(_filled(each, turn.values) for each in self.arguments)]
        try:
            with (
                collected(about, cll=self.cll, **more) as rows,
                open(os.devnull, "w", encoding="utf-8") as nowhere,
                redirect_stdout(nowhere),
            ):
                self._run()
        finally:
            sys.argv = before
        self._check(turn, used, rows)
        return rows

    def _run(self) -> None:
        try:
            comments.run_file(self.script, cll=self.cll)
        except SystemExit as status:
            if status.code not in (None, 0):
                raise

    def _check(self, turn: Turn, used: set[str], rows: Sequence[datafile.Row]) -> None:
        for name in turn.values:
            if name not in used and not any(f"{{{name}}}" in each for each in self.arguments):
                raise UsageError(
                    f"--set {name}: no main that {self.script} runs has a parameter {name}, and "
                    f"no argument of {self.script} is {{{name}}}"
                )
        if not rows:
            raise UsageError(
                f"{self.script} measured nothing: write with bsp.experiment(...), or #cll comments "
                f"and --cll"
            )


def _filled(argument: str, values: Mapping[str, Number]) -> str:
    for name, value in values.items():
        argument = argument.replace(f"{{{name}}}", str(value))
    return argument


def turns(
    procs: Sequence[int | None], combinations: Sequence[Mapping[str, Number]], repeats: int
) -> list[Turn]:
    """Return all executions; each is done once before any is done again."""
    return [
        Turn(nprocs, values, repeat)
        for repeat in range(repeats)
        for values in combinations
        for nprocs in procs
    ]


def run_all(
    sweep: Sweep, wanted: Sequence[Turn], path: Path, advance: Callable[[Turn], object]
) -> int:
    """Execute what is not in the data file yet, and add it; return how much was there already.

    Args:
        sweep: the script.
        wanted: the executions.
        path: the data file.
        advance: is called before each execution.

    Raises:
        UsageError: the file cannot be read or written, or see :meth:`Sweep.execute`.
        BaseException: what the script raises; what was measured before is in the file.
    """
    rows = datafile.read(path, missing=True)
    if path.exists():
        datafile.write(path, rows, datafile.DATA)  # without executions that were cut short
    done = {_key(row["run"].get("turn")) for row in rows}
    there = 0
    for turn in wanted:
        advance(turn)
        if _key(sweep.named(turn)) in done:
            there += 1
        else:
            datafile.append(path, sweep.execute(turn))
    return there


def _key(turn: Any) -> str:
    """Return what equal executions have in common."""
    return json.dumps(turn, sort_keys=True)


# -- what the trace of a run says of the blocks of its experiments: their h-relations -------------


H = dict[tuple[int, int], int]
"""Bytes by process and position of the sample among those of the process."""


def h_of_samples(path: Path, samples: Sequence[Samples]) -> H:
    """Return the h-relation of each passage of a block on each process, in bytes.

    It is the sum over the supersteps that ended inside, those of sub-groups too, of what the
    process sent or received, whichever is more.

    Args:
        path: a trace whose last run has the samples.
        samples: what each process has measured.

    Returns:
        Nothing where the trace cannot be read, since its records were lost for example.
    """
    try:
        run = read_trace(path).runs[-1]
    except (TraceError, IndexError):
        return {}
    if run.nprocs != len(samples):
        return {}
    h = _h_of_records(run)
    found: H = {}
    for pid, own in enumerate(samples):
        mine = np.flatnonzero((run.records["pid"] == pid) & (run.records["kind"] != Kind.END))
        began, ended = (run.records[field][mine] for field in ("arrive", "end"))
        for number, each in enumerate(own.kept):
            inside = _inside(each, began, ended)
            found[pid, number] = int(h[mine[inside]].sum())
    return found


def _inside(
    sample: BlockSample, arrived: NDArray[np.int64], ended: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Mark the supersteps that ended inside a passage."""
    first, last = round(sample.began_s * 1e9), round(sample.ended_s * 1e9)
    marked: NDArray[np.bool_] = (arrived >= first) & (ended <= last)
    return marked


def _h_of_records(run: Run) -> NDArray[np.int64]:
    """Return the greater of bytes in and bytes out, for each record."""
    sent = np.zeros(len(run.records), np.int64)
    received = np.zeros_like(sent)
    keys = ("pid", "group", "superstep")
    place = {
        key: number
        for number, key in enumerate(zip(*map(run.records.__getitem__, keys), strict=True))
    }
    for row in run.traffic:
        own = int(row["record"])
        _, group, superstep = (run.records[own][key] for key in keys)
        other = place.get((row["partner"], group, superstep))
        mine, theirs = (sent, received) if is_out(row["direction"]) else (received, sent)
        mine[own] += row["bytes"]
        if other is not None:
            theirs[other] += row["bytes"]
    return np.maximum(sent, received)
