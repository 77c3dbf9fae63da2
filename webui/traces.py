"""The traces that a page shows, and the answers to what the page asks about them."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bsplib.errors import BspError
from bsplib.profiler import format as fmt
from bsplib.profiler.compare.comparison import compare
from bsplib.profiler.compare.report import SHOWN, as_data
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.repeats import shown_run
from bsplib.profiler.rows import QUANTITIES
from bsplib.recording.records import Run, Trace
from bsplib.recording.trace import read_heads, read_trace
from bsplib.webui import services
from bsplib.webui.answers import ANSWERS, rates_of
from bsplib.webui.opened_runs import AddressError, OpenRun, Shown
from bsplib.webui.repeats import describe_repeats

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence


Json = dict[str, Any]

COMPARISON, REPEATS = "compare", "repeats"
"""The answers that are about several runs: the one of the address with the one of the query, or
with its repeats."""

_KEPT_ANSWERS = 64


@dataclass
class _Source:
    """A trace that is read when it is first needed."""

    name: str
    read: Callable[[], Trace]
    path: Path | None = None
    """Its file, if it is read from one."""
    stamp: tuple[int, int] = (0, 0)
    """When the file was written and its size, when it was last looked at."""
    heads: tuple[Run, ...] | None = None
    runs: list[OpenRun] | None = None
    error: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Traces:
    """Traces by id: ``0``, ``1``, ... Threads may share them."""

    def __init__(
        self,
        *traces: Trace | str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        names: Sequence[str] = (),
        **shown: Unpack[Shown],
    ) -> None:
        self._shown = shown
        self._folder = None if folder is None else Path(folder)
        self._sources: list[_Source] = []
        self._answers: dict[tuple[str, ...], Json | BspError] = {}
        self._lock = threading.RLock()
        for trace, name in zip_longest(traces, names, fillvalue=""):
            self.add(trace, name)
        self._look_through_folder()

    def add(self, trace: Trace | str | os.PathLike[str], name: str = "") -> str:
        """Add a trace, or a file that is read when it is first needed, and return its id."""
        if isinstance(trace, Trace):
            opened = trace
            source = _Source(name or _title(opened), lambda: opened)
        else:
            path = Path(trace)
            source = _Source(name or path.name, lambda: read_trace(path), path, _stamp(path))
        with self._lock:
            self._sources.append(source)
            return str(len(self._sources) - 1)

    def __len__(self) -> int:
        return len(self._sources)

    def overview(self) -> list[Json]:
        """Return id, name, title and runs of each trace, or the error with which it was read.

        The folder is looked through again: traces that are new there are added, and those
        that have changed are forgotten. A trace that has not been shown yet is not read for
        this; the duration of its runs is null then.
        """
        with self._lock:
            self._look_through_folder()
        return [self._describe(str(number)) for number in range(len(self))]

    def _look_through_folder(self) -> None:
        """Add the traces that are new in the folder, and forget those that have changed."""
        known = {source.path: source for source in self._sources}
        for path in [] if self._folder is None else traces_in(self._folder):
            if path not in known:
                self.add(path)
            elif known[path].stamp != (stamp := _stamp(path)):
                source = known[path]
                source.stamp, source.heads, source.runs, source.error = stamp, None, None, ""
                self._answers.clear()

    def _describe(self, trace_id: str) -> Json:
        source = self._source(trace_id)
        about: Json = {"id": trace_id, "name": fmt.visible(source.name)}
        try:
            facts = self._facts(trace_id, source)
        except (BspError, OSError) as error:
            why = fmt.visible(str(error).replace(str(source.path), source.name))
            return {**about, "title": about["name"], "runs": [], "opening": 0, "error": why}
        kept = ("nprocs", "backend", "elapsed_s", "started", "complete", "repeat")
        runs = [
            {"title": f"run {number}", **{key: fact[key] for key in kept}}
            for number, fact in enumerate(facts, start=1)
        ]
        title = (facts[0]["program"] or "") if facts else "no runs"
        opening = self._opening(trace_id, source)
        return {**about, "title": title, "runs": runs, "opening": opening, "error": None}

    def _opening(self, trace_id: str, source: _Source) -> int:
        """Return the number of the run with which a trace opens."""
        if source.runs is None and source.heads is not None:
            return shown_run(source.heads)
        return shown_run([opened.run for opened in self.runs(trace_id)])

    def _facts(self, trace_id: str, source: _Source) -> list[Json]:
        """Return what is known of the runs of a trace; of a file that is not read yet, less."""
        if source.runs is None and source.path is not None and not source.error:
            source.heads = source.heads or read_heads(source.path)
            return [services.describe_head(head) | {"elapsed_s": None} for head in source.heads]
        return [services.describe_facts(opened.run) for opened in self.runs(trace_id)]

    def _source(self, trace_id: str) -> _Source:
        if not (trace_id.isascii() and trace_id.isdigit() and int(trace_id) < len(self)):
            raise IndexError(f"there is no trace {trace_id[:20]!r}: there are {len(self)}, from 0")
        return self._sources[int(trace_id)]

    def runs(self, trace_id: str) -> list[OpenRun]:
        """Return the runs of a trace; the first call reads it.

        Raises:
            IndexError: there is no such trace.
            BspError: the trace cannot be read, also on later calls.
        """
        source = self._source(trace_id)
        with source.lock:
            if source.error:
                raise BspError(source.error)
            if source.runs is None:
                try:
                    trace = source.read()
                except BspError as error:
                    source.error = str(error)
                    raise
                source.runs = [OpenRun(run, **self._shown) for run in trace.runs]
            return source.runs

    def run(self, trace_id: str, number: int) -> OpenRun:
        """Return a run of a trace.

        Raises:
            IndexError: there is no such trace or run.
        """
        runs = self.runs(trace_id)
        if not 0 <= number < len(runs):
            raise IndexError(f"there is no run {number}: the trace has {len(runs)}, from 0")
        return runs[number]

    def answer(self, trace_id: str, number: int, name: str, query: Mapping[str, str]) -> Json:
        """Return what the page asks about a run; the same question is computed once.

        Args:
            trace_id: id of the trace.
            number: number of the run in the trace, from 0.
            name: ``COMPARISON``, ``REPEATS``, or a name in ``bsplib.webui.answers.ANSWERS``.
            query: the query of the address.

        Raises:
            IndexError: there is no such trace, run or answer.
            QueryError: a value of the query means nothing.
            BspError: the answer cannot be computed, for a run that is too large for example.
        """
        self.run(trace_id, number)  # that there is one
        if name not in {COMPARISON, REPEATS, *ANSWERS}:
            raise IndexError(f"a run has no {name[:40]!r}; it has {', '.join(ANSWERS)}")
        key = (trace_id, str(number), name, *(f"{k}={query[k]}" for k in sorted(query)))
        with self._lock:
            known = self._answers.pop(key, None)
        made = self._made(trace_id, number, name, query) if known is None else known
        if name not in ANSWERS or ANSWERS[name].kept:
            with self._lock:
                self._answers[key] = made
                if len(self._answers) > _KEPT_ANSWERS:
                    del self._answers[next(iter(self._answers))]
        if isinstance(made, BspError):
            raise made
        return made

    def _made(
        self, trace_id: str, number: int, name: str, query: Mapping[str, str]
    ) -> Json | BspError:
        """Return an answer, or the error that is the answer, so that both are computed once."""
        opened = self.run(trace_id, number)
        try:
            if name == REPEATS:
                return describe_repeats(self.runs(trace_id), number, query)
            if name == COMPARISON:
                return describe_comparison(self.run(*run_named(query)), opened, query)
            return ANSWERS[name].make(opened, query)
        except BspError as error:
            return error


def _title(trace: Trace) -> str:
    return str(trace.runs[0].meta.get("program", "trace")) if trace.runs else "no runs"


def traces_in(folder: Path) -> list[Path]:
    """Return the traces in a folder, by name: the files that end in ``.bsp``."""
    return sorted(path for path in folder.glob("*.bsp") if not path.name.startswith("."))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:  # reading it says why
        return 0, 0
    return status.st_mtime_ns, status.st_size


# -- the answer for the view "Compare": what changed since another run, node by node --------------


_RUN = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


def run_named(query: Mapping[str, str]) -> tuple[str, int]:
    """Return the run with which a query compares, ``with=T.N``: id of its trace, and number.

    Raises:
        QueryError: the query names no run.
    """
    found = _RUN.fullmatch(query.get("with", ""))
    if found is None:
        raise AddressError("with must be a trace and the number of a run, as in 1.0.")
    return found[1], int(found[2])


def describe_comparison(before: OpenRun, after: OpenRun, query: Mapping[str, str]) -> Json:
    """Compare two whole runs.

    Args:
        before: the run before.
        after: the run that the page shows.
        query: ``library``; and ``machine``, ``g``, ``l`` and ``speed`` where both runs are to be
            timed anew (see :func:`bsplib.webui.machines.rates_in`).

    Returns:
        What :func:`bsplib.profiler.compare.report.as_data` does, with ``scaling`` (a sentence
        about computation scaling, or empty) and ``quantities`` (name, title, unit and whether more
        is better).

    Raises:
        QueryError: a value of the query means nothing.
    """
    part = after.whole(query)
    comparison = compare(
        *(book_graph(run.callgraph(part), rates_of(run, query)) for run in (before, after))
    )
    scaling = comparison.scaling
    return {
        **as_data(comparison),
        "scaling": "" if scaling is None else f"{scaling}.",
        "quantities": [_quantity(name) for name in SHOWN],
    }


def _quantity(name: str) -> Json:
    quantity = QUANTITIES[name]
    about = {"name": name, "title": quantity.title, "unit": quantity.unit}
    return about | {"better": "more" if quantity.more_is_better else "less"}
