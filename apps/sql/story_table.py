"""Tables of the stages, with the paper's figures below ours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from apps.sql.paper import IMBALANCE_LESS, PAPER, WHOLE, Balance
from apps.sql.plan import STAGES
from apps.sql.story import Figures, Setting
from profiler import format as fmt


def show(setting: Setting, figures: Sequence[Figures]) -> None:
    """Print balance and cost stage by stage, and where the traces are."""
    console = Console()
    console.print(_title(setting, figures))
    console.print(balance_table(figures))
    console.print(cost_table(setting, figures))
    console.print(_footer(figures))
    for found in figures:
        console.print(f"  bsp view {found.trace}", soft_wrap=True)


def balance_table(figures: Sequence[Figures]) -> Table:
    """Return a table of the balance of h-relations and computation, ours and the paper's."""
    table = _table("Balance: average | least process, in % of the greatest", "")
    for title in ("queries\nh", "queries\ncomp", "sort 2, 3\nh", "sort 6\nh", "sort 7\ncomp"):
        table.add_column(title, justify="right", no_wrap=True)
    for found in figures:
        ours = (found.sql_h, found.sql_comp, found.sample_h, found.exchange_h, found.merge_comp)
        table.add_row(STAGES[found.stage].title, *(_pair(each.percentages()) for each in ours))
        paper = PAPER[found.stage]
        theirs = (paper.sql_h, paper.sql_comp, paper.sample_h, paper.exchange_h, paper.merge_comp)
        table.add_row("  the paper", *map(_pair, theirs), style="dim")
    return table


def cost_table(setting: Setting, figures: Sequence[Figures]) -> Table:
    """Return a table of the costs, with the gain of each stage over the one before."""
    table = _table(f"Cost: w + h g + l on {setting.machine.label}", "")
    titles = ("sort\n2 to 4", "sort\n5 to 7", "all\nsorts", "gain", "in the\npaper", "all", "gain")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    before: Figures | None = None
    for found in figures:
        sort, whole = ("", "")
        if before is not None:
            sort = gain(before.sort_s, found.sort_s)
            whole = gain(before.total_s, found.total_s)
        parts = (found.sample_s, found.exchange_s, found.sort_s)
        table.add_row(
            STAGES[found.stage].title,
            *map(fmt.seconds, parts),
            sort,
            PAPER[found.stage].sort_gain,
            fmt.seconds(found.total_s),
            whole,
        )
        before = found
    return table


def gain(before_s: float, now_s: float) -> str:
    """Return the gain in percent of the time before, as in the paper's Table 1."""
    return f"{100 * (before_s - now_s) / before_s:+.0f}%" if before_s else ""


def imbalance_less(before: Figures, now: Figures) -> str:
    """Return the decrease of the imbalance (max - average) of the queries' h-relations."""
    first, second = (each.sql_h.maximum - each.sql_h.average for each in (before, now))
    return gain(first, second).lstrip("+")


def _table(title: str, first: str) -> Table:
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    return table


def _title(setting: Setting, figures: Sequence[Figures]) -> str:
    rows, generator = figures[0].rows_of_tran, setting.generator
    sizes = ", ".join(f"{name} {count:,}" for name, count in generator.rows.items())
    return (
        f"{setting.nprocs} virtual processors. Rows: {sizes}, Zipf {generator.skew:g}, in blocks "
        f"of {setting.block:,}: a process has {min(rows):,} to {max(rows):,} of TRAN. Oversampling "
        f"by experiment: {setting.oversampling}.\n"
    )


def _footer(figures: Sequence[Figures]) -> str:
    first, last = figures[0], figures[-1]
    whole = ", ".join(
        f"{gain(*seconds)} on a {machine} ({seconds[0]} s to {seconds[1]} s)"
        for machine, seconds in WHOLE.items()
    )
    return (
        f"With balanced input the imbalance of h is {imbalance_less(*figures[:2])} less; in the "
        f"paper {IMBALANCE_LESS}.\n"
        f"All stages together gain {gain(first.total_s, last.total_s)}; in the paper {whole}.\n"
        "The traces:"
    )


def _pair(balance: Balance | None) -> str:
    return "" if balance is None else f"{balance[0]} | {balance[1]}"
