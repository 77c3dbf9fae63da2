"""Tables of the stages, with the paper's figures below ours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.sql.paper import (
    IMBALANCE_LESS,
    PAPER,
    PAPER_NPROCS,
    Balance,
)
from bsplib.apps.sql.plan import STAGES
from bsplib.apps.sql.story import StageFigures, StorySetting
from bsplib.profiler import format as fmt


def show(setting: StorySetting, figures: Sequence[StageFigures]) -> None:
    """Print balance and cost stage by stage, and where the traces are."""
    console = Console()
    console.print(_title(setting, figures))
    console.print(balance_table(figures))
    console.print(relation_table(figures))
    console.print(cost_table(setting, figures))
    console.print(_footer(setting, figures))
    for found in figures:
        console.print(f"  bsp view {found.trace}", soft_wrap=True)


def balance_table(figures: Sequence[StageFigures]) -> Table:
    """Return a table of the balance of h-relations and computation, ours and the paper's."""
    titles = ("queries\nh", "queries\ncomp", "sort 2, 3\nh", "sort 6\nh", "sort 7\ncomp")
    names = ("sql_h", "sql_comp", "sample_h", "exchange_h", "merge_comp")
    table = figure_table("Balance: average | least process, in % of the greatest", "", titles)
    for found in figures:
        ours = (_pair(getattr(found, name).percentages()) for name in names)
        theirs = (_pair(getattr(PAPER[found.stage], name)) for name in names)
        table.add_row(STAGES[found.stage].title, *ours)
        table.add_row(f"  the paper, p = {PAPER_NPROCS}", *theirs, style="dim")
    return table


BEFORE = {"balanced": "original", "theoretical": "balanced", "bitonic": "balanced"}
"""The stage with which each is compared: both sorts with the factor of the theory are compared
with the sort that they are to replace, whose factor was found by experiment."""


class _Gains:
    """Gains of a stage over that of ``BEFORE``, as text; empty for the first stage."""

    def __init__(self, now: StageFigures, figures: Sequence[StageFigures]) -> None:
        self._now = now
        self._before = {each.stage: each for each in figures}.get(BEFORE.get(now.stage, ""))

    def of(self, name: str) -> str:
        """Return the gain of a figure."""
        if self._before is None:
            return ""
        return gain(getattr(self._before, name), getattr(self._now, name))

    def by_balance(self) -> str:
        """Return the gain in h of the queries by balance."""
        return "" if self._before is None else f"{by_balance(self._before, self._now):+.0%}"


def relation_table(figures: Sequence[StageFigures]) -> Table:
    """Return a table of h in bytes, with the gain of each stage over that of ``BEFORE``."""
    titles = ("all\nsorts", "gain", "the\nqueries", "gain", "of it by\nbalance")
    table = figure_table(
        "h in bytes: the greatest of max(in, out) of a superstep, in sum",
        "",
        (*titles, "with the\nbalancing", "gain"),
    )
    for found in figures:
        gains = _Gains(found, figures)
        table.add_row(
            STAGES[found.stage].title,
            *(fmt.size(found.sort_h), gains.of("sort_h")),
            *(fmt.size(found.queries_h), gains.of("queries_h"), gains.by_balance()),
            *(fmt.size(found.total_h), gains.of("total_h")),
        )
    return table


def cost_table(setting: StorySetting, figures: Sequence[StageFigures]) -> Table:
    """Return a table of the costs, with the gain of each stage over that of ``BEFORE``."""
    titles = ("sort\n2 to 4", "sort\n5 to 7", "all\nsorts", "gain", "paper,\np = 16", "all", "gain")
    table = figure_table(f"Time by w + h g + l on {setting.machine.label}", "", titles)
    for found in figures:
        gains = _Gains(found, figures)
        table.add_row(
            STAGES[found.stage].title,
            *map(fmt.seconds, (found.sample_s, found.exchange_s, found.sort_s)),
            gains.of("sort_s"),
            PAPER[found.stage].sort_gain,
            fmt.seconds(found.total_s),
            gains.of("total_s"),
        )
    return table


def gain(before_s: float, now_s: float) -> str:
    """Return the gain in percent of the time before, as in the paper's Table 1."""
    return f"{100 * (before_s - now_s) / before_s:+.0f}%" if before_s else ""


def by_balance(before: StageFigures, now: StageFigures) -> float:
    """Return the gain in h of the queries that comes from balance alone, as a fraction.

    The greatest h is the average h divided by the balance. The rest of the gain is that more or
    less is moved: rows that lie evenly from the start need not be moved to where there are fewer.
    """
    if not (before.sql_h.maximum and now.sql_h.maximum):
        return 0.0  # one process sends nothing
    first, second = (each.sql_h.average / each.sql_h.maximum for each in (before, now))
    return 1 - first / second


def printed_by_balance() -> float:
    """Return what the paper's figures say of the gain by balanced input, at the same average h.

    The imbalance of (54% | 21%) is 46% of the greatest h, and is reduced by 26%.
    """
    before = PAPER["original"].sql_h
    assert before is not None
    return (1 - before[0] / 100) * float(IMBALANCE_LESS.rstrip("%")) / 100


def imbalance_change(before: StageFigures, now: StageFigures) -> str:
    """Return the change of the imbalance (max - average) of the queries' h-relations."""
    first, second = (each.sql_h.maximum - each.sql_h.average for each in (before, now))
    return f"{100 * (second - first) / first:+.0f}%" if first else "nothing"


def figure_table(title: str, first: str, titles: Sequence[str]) -> Table:
    """Return a table with a column of names and columns of figures."""
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for each in titles:
        table.add_column(each, justify="right", no_wrap=True)
    return table


def _title(setting: StorySetting, figures: Sequence[StageFigures]) -> str:
    rows, generator = figures[0].rows_of_tran, setting.generator
    one = "virtual processor" if setting.nprocs == 1 else "virtual processors"
    sizes = ", ".join(f"{name} {count:,}" for name, count in generator.rows.items())
    return (
        f"{setting.nprocs} {one}. Rows: {sizes}, Zipf {generator.skew:g}, in blocks "
        f"of {setting.block:,}: a process has {min(rows):,} to {max(rows):,} of TRAN. Oversampling "
        f"by experiment: {setting.oversampling}.\n"
    )


def _footer(setting: StorySetting, figures: Sequence[StageFigures]) -> str:
    first, last = figures[0], figures[-1]
    together = gain(first.total_s, last.total_s)
    lines = [f"All stages together gain {together}; 'table1' has the paper's gains."]
    if setting.nprocs > 1:
        lines = [
            f"With balanced input the imbalance of h changes by {imbalance_change(*figures[:2])}; "
            f"in the paper, at p = {PAPER_NPROCS}, by -{IMBALANCE_LESS}, which is a gain of "
            f"{printed_by_balance():.0%} in h by balance.",
            f"The h-imb path of '{STAGES[figures[1].stage].title}': {' > '.join(figures[1].path)}.",
            *lines,
            "A gain is that over the stage before; that of the last two, over 'input balanced'.",
        ]
    return "\n".join([*lines, "The traces:"])


def _pair(balance: Balance | None) -> str:
    return "" if balance is None else f"{balance[0]} | {balance[1]}"
