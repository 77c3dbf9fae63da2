"""Small tables for notebooks, as HTML. All text from a trace is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import METRIC_TITLES

if TYPE_CHECKING:
    from bsplib.profiler.profile import Profile, RunProfile

MOST_ROWS = 10
"""Nodes of the table of a run."""


def table_of_runs(profile: Profile) -> str:
    """Return a table with a row for each run of a trace."""
    heads = ("run", "program", "", "processes", "time")
    rows = (
        (
            str(entry.number),
            fmt.program(entry.run),
            f"backend {fmt.said(entry.run, 'backend')}, {fmt.state(entry.run)}",
            str(entry.nprocs),
            fmt.seconds(entry.elapsed_s),
        )
        for entry in profile.runs
    )
    return _table(heads, rows, texts=3)


def table_of_losses(profile: RunProfile) -> str:
    """Return the title of a run, its verdict, and a table of the nodes that lose most."""
    ledger = profile.ledger()
    sentences = "".join(f"<li>{escape(entry.text)}</li>" for entry in profile.verdict().sentences)
    order = sorted(ledger.nodes, key=lambda node: ledger.nodes[node].lost_s, reverse=True)
    heads = ("function or cost centre", "loss", "cost", "supersteps")
    rows = (_row(profile, name) for name in order[:MOST_ROWS])
    rest = len(order) - MOST_ROWS
    more = f"<p>and {fmt.counted(rest, 'more node')}: see nodes()</p>" if rest > 0 else ""
    titles = (*heads, *(METRIC_TITLES[metric] for metric in METRICS))
    title = f"<p><b>{escape(fmt.title(profile.run, profile.number))}</b></p>"
    prices = f"<p>{escape(ledger.rates.sentence())}</p>"
    return f"{title}<ul>{sentences}</ul>{_table(titles, rows, texts=1)}{more}{prices}"


def _row(profile: RunProfile, name: str) -> list[str]:
    entry, booked = profile.callgraph.graph.nodes[name], profile.ledger().nodes[name]
    cost = entry["cost"]
    return [
        fmt.label(entry["node"]),
        fmt.seconds(booked.lost_s),
        fmt.seconds(booked.cost_s),
        str(cost.count),
        *(fmt.summary(cost[metric], metric) for metric in METRICS),
    ]


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
