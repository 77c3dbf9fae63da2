"""Write the tables of ``benchmarks/README.md`` from the JSON files beside it.

``python -m benchmarks.table`` writes them and shows the goals; with ``--check`` it only tells
whether they are up to date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks import terminal
from benchmarks.harness import RESULTS
from benchmarks.report import (
    Document,
    GoalFigures,
    comparisons,
    documents,
    duration,
    goals,
    quartiles,
    tally,
)

README = Path(__file__).parent / "README.md"
BEGIN = "<!-- tables: written by python -m benchmarks.table -->"
END = "<!-- end of tables -->"


def tables(results: Path = RESULTS) -> str:
    """Return the tables of all JSON files in a folder, in Markdown."""
    found = documents(results)
    lines = list(_goals(goals(found)))
    for document in found:
        lines += _document(document)
    return "\n".join(lines)


def with_tables(text: str, new: str) -> str:
    """Return the text of a README with its tables replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{new}\n{END}{after}"


def _goals(rows: list[GoalFigures]) -> Iterator[str]:
    if not rows:
        return
    yield "## Goals"
    yield ""
    yield f"{tally(rows)}."
    yield ""
    yield "| | took | goal | measured | quartiles | of the least | met |"
    yield "|---|---:|---|---:|---:|---:|---|"
    for row in rows:
        verdict = f"**{row.verdict}**" if row.met is False else row.verdict
        yield (
            f"| {row.section}: {row.case} | {row.took} | {row.goal} | {row.median} "
            f"| {row.quartiles} | {row.of_least} | {verdict} |"
        )
    yield ""


def _document(document: Document) -> Iterator[str]:
    yield f"## {document['benchmark']}"
    yield ""
    if not all("circumstances" in section for section in document["sections"]):
        yield _provenance(document)
    for section in document["sections"]:
        yield ""
        yield f"### {section['title']}"
        yield ""
        if "circumstances" in section:
            yield _provenance(section["circumstances"])
            yield ""
        yield from _section(section)
    yield ""


def _provenance(document: Document) -> str:
    """Say when, where and with what a document, or a section of its own, was measured."""
    machine, load = document["machine"], document["load_average"]
    versions = {name: version for name, version in document["versions"].items() if version}
    python, ours = versions.pop("python"), versions.pop("bsplib")
    built = _built(document.get("build"))
    others = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"Measured {document['date'][:10]} in {document['seconds_taken']:.0f} s on "
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['system']}, with Python {python}{built[0]}, {others}, "
        f"bsplib {ours}{built[1]} at commit {document['commit'][:10]}"
        f"{' with changes' if document['commit'].endswith('+') else ''}; load average "
        f"{load['before'][0]:.2f} before, {load['after'][0]:.2f} after."
    )


def _built(build: Document | None) -> tuple[str, str]:
    """Return how the interpreter and bsplib were built, as additions to their versions."""
    if build is None:  # measured before this was noted
        return "", ""
    optimised = "optimised" if build["python_optimised"] else "not optimised"
    lto = " with LTO" if build["python_lto"] else ""
    return f" ({optimised}{lto}, {build['python_level']})", f" (core: {build['core']})"


def _section(section: Document) -> Iterator[str]:
    unit = section["unit"]
    compared = any(case["against"] for case in section["cases"])
    counted = any("lines" in case for case in section["cases"])
    more = (" lines |" if counted else "") + (" compared with |" if compared else "")
    yield f"| | one {unit} | quartiles | least |{more}"
    yield "|---|---:|---:|---:|" + ("---:|" if counted else "") + ("---|" if compared else "")
    for case in section["cases"]:
        took = case["seconds"]
        median, least = duration(took["median"]), duration(took["least"])
        line = f"| {case['name']} | {median} | {quartiles(took)} | {least} |"
        line += f" {case.get('lines', '')} |" if counted else ""
        yield line + (f" {'; '.join(comparisons(case['against']))} |" if compared else "")


def write() -> None:
    """Write the tables into the README, and show the goals on the terminal."""
    text = README.read_text(encoding="utf-8")
    README.write_text(with_tables(text, tables()), encoding="utf-8")
    terminal.show_goals(goals(documents(RESULTS)))
    click.echo(f"wrote {README.parent.name}/{README.name}")


@click.command()
@click.option("--check", is_flag=True, help="Change nothing, and fail if a table is out of date.")
def main(check: bool) -> None:
    """Write the tables of the README from the JSON files, and show the goals."""
    text = README.read_text(encoding="utf-8")
    if not check:
        write()
    elif text != with_tables(text, tables()):
        raise click.ClickException("the tables are out of date; run python -m benchmarks.table")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.table")
