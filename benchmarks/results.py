"""The file of all figures, and the table of goals that is made of it.

``python -m benchmarks.results`` writes the table into ``benchmarks/README.md``; with ``--check`` it
only tells whether it is up to date.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks.goals import BYTES, GOALS, MORE, TIMES, Goal
from bsplib.profiler.format import seconds

FILE = Path(__file__).with_suffix(".json")
README = Path(__file__).with_name("README.md")
BEGIN = "<!-- goals: written by python -m benchmarks.results -->"
END = "<!-- end of goals -->"

Results = dict[str, Any]
"""``circumstances``, a list, and ``sections`` by title, each of which was ``measured`` in one."""


# -- the file -------------------------------------------------------------------------------


def read(path: Path = FILE) -> Results:
    """Read the file of results."""
    found: Results = json.loads(path.read_text(encoding="utf-8"))
    return found


def merged(before: Results, circumstances: dict[str, Any], sections: dict[str, Any]) -> Results:
    """Return results in which sections that were measured now replace those of before."""
    every = [*before["circumstances"], circumstances]
    now = {title: section | {"measured": len(every) - 1} for title, section in sections.items()}
    whole = before["sections"] | now
    used = sorted({section["measured"] for section in whole.values()})
    return {
        "circumstances": [every[number] for number in used],
        "sections": {
            title: section | {"measured": used.index(section["measured"])}
            for title, section in whole.items()
        },
    }


def write(results: Results, path: Path = FILE) -> None:
    """Write the file of results, with a line for each section."""
    written = partial(json.dumps, ensure_ascii=False)
    where = ",\n".join(map(written, results["circumstances"]))
    sections = results["sections"].items()
    found = ",\n".join(f"{written(title)}: {written(section)}" for title, section in sections)
    text = f'{{"circumstances": [\n{where}\n],\n"sections": {{\n{found}\n}}}}\n'
    path.write_text(text, encoding="utf-8")


# -- the table of goals ---------------------------------------------------------------------


class GoalRow(NamedTuple):
    """A goal and what was reached, in words."""

    who: str
    what: str
    goal: str
    reached: str
    met: bool | None
    """None if it was not measured."""
    measured: int | None
    """In which circumstances."""


def rows(results: Results) -> list[GoalRow]:
    """Return a row for each goal, and for each finding about predictions and verdicts."""
    sections = results["sections"]
    of_goals = [_row(who, goal, sections) for who, goals in GOALS.items() for goal in goals]
    of_findings = [
        GoalRow(who=title, measured=section["measured"], **each)
        for title, section in sections.items()
        for each in section.get("findings", ())
    ]
    return of_goals + of_findings


def _row(who: str, goal: Goal, sections: Mapping[str, Any]) -> GoalRow:
    section = sections.get(goal.section)
    figure = None if section is None else goal.figure(section["cases"])
    what = f"{goal.section}: {goal.case}"
    if figure is None:
        return GoalRow(who, what, _limit(goal), "", None, None)
    median = section["cases"][goal.case]["seconds"]["median"]
    took = f"{duration(median)}, " if goal.of else ""
    reached = _written(goal, figure["median"])
    if "low" in figure:
        reached += f" ({_written(goal, figure['low'])} to {_written(goal, figure['high'])})"
    met = figure["median"] <= goal.at_most
    return GoalRow(who, what, _limit(goal), took + reached, met, section["measured"])


def _limit(goal: Goal) -> str:
    limit = _written(goal, goal.at_most)
    if goal.kind == MORE:
        return f"{limit} more than {goal.of}"
    return f"{limit} times {goal.of}" if goal.kind == TIMES else limit


def _written(goal: Goal, value: float) -> str:
    if goal.kind == TIMES:
        return number(value)
    return f"{number(value / 2**20)} MiB" if goal.kind == BYTES else duration(value)


def duration(value_s: float) -> str:
    """Return seconds with three digits and a suitable unit."""
    return f"{_sign(value_s)}{seconds(abs(value_s))}"


def number(value: float) -> str:
    """Return a number with three digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{_sign(value)}{abs(value):.{digits}f}"


def _sign(value: float) -> str:
    return "−" if value < 0 else ""  # noqa: RUF001  # a minus sign


def tally(found: list[GoalRow]) -> str:
    """Say how many of the goals are met."""
    met, unknown = sum(row.met is True for row in found), sum(row.met is None for row in found)
    return f"{met} of {len(found)} goals are met" + (f", {unknown} not measured" if unknown else "")


VERDICTS = {True: "yes", False: "no", None: "not measured"}


def table(results: Results) -> str:
    """Return the table of goals in Markdown, with when and where each was measured below it."""
    found = rows(results)
    lines = [f"{tally(found)}.", ""]
    lines += [
        "| who cares | what | at most | reached (quartiles) | met | measured |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        verdict = VERDICTS[row.met] if row.met else f"**{VERDICTS[row.met]}**"
        when = "" if row.measured is None else f"[{row.measured + 1}]"
        lines.append(
            f"| {row.who} | {row.what} | {row.goal} | {row.reached} | {verdict} | {when} |"
        )
    lines += ["", "Measured:", ""]
    used = {row.measured for row in found}
    for place, where in enumerate(results["circumstances"]):
        if place in used:
            lines.append(f"- [{place + 1}] {_circumstances(where)}")
    return "\n".join(lines)


def _circumstances(where: Mapping[str, Any]) -> str:
    machine, versions = where["machine"], dict(where["versions"])
    build = where.get("build", {})
    changes = " with changes" if where["commit"].endswith("+") else ""
    core = f" (core: {build['core']})" if build else ""
    ours = versions.pop("bsplib")
    peers = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{where['date'][:10]}, {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; {peers}, bsplib {ours}"
        f"{core} at commit {where['commit'][:10]}{changes}; load average {where['load_average']:g}"
    )


def with_table(text: str, new: str) -> str:
    """Return the text of a README with its table replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{new}\n\n{END}{after}"


@click.command()
@click.option("--check", is_flag=True, help="Change nothing, and fail if the table is out of date.")
def main(check: bool) -> None:
    """Write the table of goals into benchmarks/README.md."""
    text = README.read_text(encoding="utf-8")
    new = with_table(text, table(read()))
    if not check:
        README.write_text(new, encoding="utf-8")
    elif text != new:
        raise click.ClickException("the table is out of date; run python -m benchmarks.results")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.results")
