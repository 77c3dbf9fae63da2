"""The profile of a trace for programs and notebooks: call graphs, losses and tables.

:func:`load` is where to begin. What a run offers is computed when it is first asked for, and
kept. The tables are pandas DataFrames (extra ``notebook``); nothing else needs an extra.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from bsplib.extras import need
from bsplib.machine import Machine, load_machine
from bsplib.profiler import format as fmt
from bsplib.profiler import tables
from bsplib.profiler.callgraph import CallGraph, build
from bsplib.profiler.critical import LOSS, critical_path
from bsplib.profiler.efficiency import scaling_among
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.prices import recorded_machine
from bsplib.profiler.rates import rates_on
from bsplib.profiler.rows import QUANTITIES, SHOWN, row_of
from bsplib.profiler.survey import elapsed_s
from bsplib.profiler.tables import plain_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import networkx
    import pandas

    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.verdict import Verdict
    from bsplib.recording.records import Run, Trace


class Picture(NamedTuple):
    """A picture, which a notebook shows."""

    svg: str
    """An SVG element, without scripts and links."""

    def __repr__(self) -> str:
        return f"<Picture of {len(self.svg)} characters>"

    def _repr_svg_(self) -> str:
        """Return the picture, for a notebook."""
        return self.svg


class Profile:
    """The profile of a trace."""

    def __init__(self, trace: Trace, name: str = "", *, library: bool = False) -> None:
        """Show the runs of a trace that has been read.

        Args:
            trace: the trace.
            name: what to call it.
            library: also show the functions of bsplib as nodes.
        """
        self.trace = trace
        self.name = name
        self.runs = tuple(
            RunProfile(run, number, library=library)
            for number, run in enumerate(trace.runs, start=1)
        )
        """One for each run of the program, in order."""

    def __repr__(self) -> str:
        count = len(self.runs)
        return f"<Profile of {fmt.visible(self.name)}: {count} run{'s' * (count != 1)}>"

    def _repr_html_(self) -> str:
        """Return a table of the runs, for a notebook."""
        return table_of_runs(self)


@dataclass(frozen=True, eq=False, repr=False)
class RunProfile:
    """The profile of one run.

    Times are seconds and sizes bytes. A node of the call graph is named by its id, which is
    the same in all traces of the program.
    """

    run: Run
    """The run as it was recorded."""
    number: int
    """Its number in the trace, from 1."""
    library: bool = field(default=False, kw_only=True)
    """Whether the functions of bsplib are nodes, too."""
    chosen: Rates | None = field(default=None, kw_only=True)
    """Rates of another Machine, on which the run is timed anew; None: those of the run."""

    @property
    def program(self) -> str:
        """The program with its arguments, in a form that is safe to show."""
        return fmt.program(self.run, most=10_000)

    @property
    def backend(self) -> str:
        """The backend, such as ``shm``; ``unknown`` where the trace does not say."""
        return fmt.said(self.run, "backend")

    @property
    def nprocs(self) -> int:
        """Number of processes."""
        return self.run.nprocs

    @property
    def elapsed_s(self) -> float:
        """Time from the beginning of the first superstep to the end of the last one."""
        return elapsed_s(self.run)

    @property
    def machine(self) -> Machine | None:
        """The Machine that was given to the run, as far as its trace names one."""
        return recorded_machine(self.run)

    @property
    def rates(self) -> Rates:
        """What computation, bytes and supersteps cost here."""
        return self.book().rates

    @cached_property
    def callgraph(self) -> CallGraph:
        """The call graph, with costs as objects; :meth:`graph` has plain values."""
        return build(self.run, library=self.library)

    @cached_property
    def _book(self) -> GraphBook:
        return book_graph(self.callgraph, self.chosen)

    def book(self) -> GraphBook:
        """Return what the time of the run was used for, by node, and its greatest losses."""
        return self._book

    def verdict(self) -> Verdict:
        """Return at most five sentences that say what is lost, and where."""
        return self._book.verdict()

    def critical_path(self, name: str = LOSS) -> list[str]:
        """Return the ids of the nodes from ``main`` to a bottleneck.

        Args:
            name: ``loss``, or one of ``bsplib.profiler.critical.PATHS``.

        Returns:
            Node ids, from ``main`` to a cost centre; empty if the score of ``main`` is 0.

        Raises:
            ValueError: there is no such path.
        """
        return self._book.path() if name == LOSS else critical_path(self.callgraph, name)

    def on(self, machine: Machine | str, *, speed: str | None = None) -> RunProfile:
        """Return this run as it would be on another Machine.

        What was measured remains as it is: the seconds of computation, communication and
        idle time of a node, and its bytes.

        Args:
            machine: a Machine, the name of one that comes with bsplib, or a ``.toml`` file.
            speed: speed of a process of the Machine: in flop/s, as ``3e8``, or as a multiple
                of the speed of the computer that recorded the run, as ``0.5x``.

        Raises:
            UsageError: there is no such Machine, or it lacks a figure that is needed.

        >>> import bsplib, tempfile
        >>> def main(bsp):
        ...     bsp.send(0, bytes(1000))
        ...     bsp.sync()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = bsplib.run(main, nprocs=4, backend="sim", profile=f"{folder}/run.bsp")
        ...     (run,) = bsplib.load(f"{folder}/run.bsp").runs
        >>> slow = bsplib.Machine(name="slow net", source="", g=1e-6, l=1e-3)
        >>> there = run.on(slow, speed="1x")
        >>> round(there.book().elapsed_s, 3)  # 3000 bytes into process 0
        0.004
        """
        found = load_machine(machine) if isinstance(machine, str) else machine
        rates = rates_on(found, self.run, speed=speed)
        there = RunProfile(self.run, self.number, library=self.library, chosen=rates)
        there.__dict__["callgraph"] = self.callgraph  # the same at all prices
        return there

    def nodes(self) -> pandas.DataFrame:
        """Return a row for each function and cost centre, the greatest loss first.

        The index is the id of the node. The columns are described in ``docs/reference/traces.md``.

        Raises:
            MissingExtraError: pandas is not installed.

        >>> import bsplib, tempfile
        >>> def work(bsp):
        ...     bsp.charge(bsp.pid * 1e-3)
        ...     bsp.sync()
        >>> def main(bsp):
        ...     for _ in range(10):
        ...         work(bsp)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = bsplib.run(main, nprocs=3, backend="sim", profile=f"{folder}/run.bsp")
        ...     (run,) = bsplib.load(f"{folder}/run.bsp").runs
        >>> nodes = run.nodes()
        >>> functions = nodes[nodes.kind == "function"]
        >>> shown = functions[["name", "supersteps", "comp_max_s", "comp_avg_s"]]
        >>> print(shown.to_string(index=False))
        name  supersteps  comp_max_s  comp_avg_s
        main          10        0.02        0.01
        work          10        0.02        0.01
        """
        table = _frame(tables.nodes(self._book)).set_index("id")
        return table.sort_values("loss_s", ascending=False, kind="stable")

    def supersteps(self) -> pandas.DataFrame:
        """Return a row for each superstep of each group, in order of group and number.

        The columns are described in ``docs/reference/traces.md``.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return _frame(tables.supersteps(self._book))

    def graph(self) -> networkx.DiGraph:
        """Return the call graph with plain numbers and texts as attributes.

        Nodes and edges have the columns of :meth:`nodes`, so that ``networkx`` can write the
        graph as GraphML or JSON. Texts from the trace are made safe to show.
        """
        graph = plain_graph(self._book)
        graph.graph.update(tables.facts(self.run, self.number))
        return graph

    def picture(self, name: str = LOSS) -> Picture:
        """Return the shaded call graph, which a notebook shows as an SVG picture.

        Of a large graph about 80 nodes are drawn, and the picture says what was left out.

        Args:
            name: what the shades stand for: ``loss``, or one of ``bsplib.profiler.critical.PATHS``.

        Raises:
            ValueError: there is no such path.
            LayoutError: no layout was found in time.
        """
        from bsplib.profiler.drawing.picture import drawing, drawn_as_svg  # noqa: PLC0415  # few draw
        from bsplib.profiler.drawing.view import view_of  # noqa: PLC0415

        return Picture(drawn_as_svg(drawing(self.callgraph, view_of(name, self._book))))

    def __repr__(self) -> str:
        there = f", as on {self.chosen.source}" if self.chosen else ""
        return f"<RunProfile {fmt.title(self.run, self.number)}{there}>"

    def _repr_svg_(self) -> str | None:
        """Return the shaded call graph, for what shows no HTML; None if it has no layout."""
        from bsplib.profiler.drawing.graphviz import LayoutError  # noqa: PLC0415  # few draw

        try:
            return self.picture().svg
        except LayoutError:
            return None

    def _repr_html_(self) -> str:
        """Return the verdict and the greatest losses as a small table, for a notebook."""
        return table_of_losses(self)


def _frame(columns: tables.Columns) -> pandas.DataFrame:
    pd = need("pandas")
    table: pandas.DataFrame = pd.DataFrame(columns)
    return table


# -- small tables for notebooks, as HTML. All text from a trace is escaped ------------------------


MOST_ROWS = 10
"""Nodes of the table of a run."""


def table_of_runs(profile: Profile) -> str:
    """Return a table with a row for each run of a trace."""
    scalings = [scaling_among(entry, profile.runs) for entry in profile.runs]
    scaled = any(scalings)
    title = ("computation scaling",) if scaled else ()
    heads = ("run", "program", "", "processes", "time", *title)
    rows = (
        (
            str(entry.number),
            fmt.program(entry.run),
            f"backend {fmt.said(entry.run, 'backend')}, {fmt.state(entry.run)}",
            str(entry.nprocs),
            fmt.seconds(entry.elapsed_s),
            *([f"{scaling.fraction:.0%}" if scaling else ""] if scaled else []),
        )
        for entry, scaling in zip(profile.runs, scalings, strict=True)
    )
    return _table(heads, rows, texts=3)


def table_of_losses(profile: RunProfile) -> str:
    """Return the title of a run, its verdict, and a table of the nodes that lose most."""
    book = profile.book()
    sentences = "".join(f"<li>{escape(entry.text)}</li>" for entry in profile.verdict().sentences)
    order = sorted(book.nodes, key=lambda node: book.nodes[node].sizes, reverse=True)
    found = (row_of(book, name) for name in order[:MOST_ROWS])
    rows = ([fmt.label(row.node), *(row.text(name) for name in SHOWN)] for row in found)
    rest = len(order) - MOST_ROWS
    more = f"<p>and {fmt.counted(rest, 'more node')}: see nodes()</p>" if rest > 0 else ""
    heads = ("function or cost centre", *(QUANTITIES[name].title for name in SHOWN))
    title = f"<p><b>{escape(fmt.title(profile.run, profile.number))}</b></p>"
    rates = f"<p>{escape(book.rates.sentence())}</p>"
    return f"{title}<ul>{sentences}</ul>{_table(heads, rows, texts=1)}{more}{rates}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """Return a table; its first columns, which are texts, begin at the left."""
    head = "".join(_cell("th", position < texts, text) for position, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(_cell("td", at < texts, text) for at, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(tag: str, left: bool, text: str) -> str:
    style = f"text-align:{'left' if left else 'right'};padding:2px 8px;white-space:nowrap"
    return f'<{tag} style="{style}">{escape(text)}</{tag}>'
