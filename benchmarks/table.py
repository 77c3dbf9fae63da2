"""Write the tables of ``benchmarks/README.md`` from the JSON files beside it.

``python -m benchmarks.table`` writes them, ``--check`` says whether they are up to date.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.harness import RESULTS

README = Path(__file__).parent / "README.md"
BEGIN = "<!-- tables: written by python -m benchmarks.table -->"
END = "<!-- end of tables -->"

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def tables(results: Path = RESULTS) -> str:
    """Return the tables of all JSON files in a folder, in Markdown."""
    return "\n".join(line for path in sorted(results.glob("*.json")) for line in _document(path))


def _document(path: Path) -> Iterator[str]:
    document = json.loads(path.read_text(encoding="utf-8"))
    yield f"## {path.stem}"
    yield ""
    yield _provenance(document)
    for section in document["sections"]:
        yield ""
        yield f"### {section['title']}"
        yield ""
        yield from _section(section)
    yield ""


def _provenance(document: dict[str, Any]) -> str:
    machine, versions, load = document["machine"], document["versions"], document["load_average"]
    return (
        f"Measured {document['date'][:10]} in {document['seconds_taken']:.0f} s on "
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['system']}, with Python {versions['python']}, numpy {versions['numpy']}, bsplib "
        f"{versions['bsplib']} at commit {document['commit'][:10]}"
        f"{' with changes' if document['commit'].endswith('+') else ''}; load average "
        f"{load['before'][0]:.2f} before, {load['after'][0]:.2f} after."
    )


def _section(section: dict[str, Any]) -> Iterator[str]:
    unit = section["unit"]
    compared = any(case["against"] for case in section["cases"])
    yield f"| | one {unit} | quartiles | least |" + (" compared with |" if compared else "")
    yield "|---|---:|---:|---:|" + ("---|" if compared else "")
    for case in section["cases"]:
        took = case["seconds"]
        median, least = duration(took["median"]), duration(took["least"])
        line = f"| {case['name']} | {median} | {_quartiles(took)} | {least} |"
        yield line + (f" {_comparisons(case['against'])} |" if compared else "")


def _quartiles(took: dict[str, float]) -> str:
    lower, upper = duration(took["lower_quartile"]), duration(took["upper_quartile"])
    return f"{lower} to {upper}"


def _comparisons(against: dict[str, Any]) -> str:
    return "; ".join(_comparison(other, found) for other, found in against.items())


def _comparison(other: str, found: dict[str, Any]) -> str:
    ratio, more = found["ratio"], found["difference_s"]["median"]
    return (
        f"{_number(ratio['median'])} ({_number(ratio['lower_quartile'])} to "
        f"{_number(ratio['upper_quartile'])}) times {other}, "
        f"{'+' if more >= 0 else '−'}{duration(abs(more))}"  # noqa: RUF001  # a minus sign
    )


def duration(seconds: float) -> str:
    """Return seconds with three digits in the unit that suits them."""
    size, name = next((unit for unit in _UNITS if abs(seconds) >= unit[0]), _UNITS[-1])
    return f"{_number(seconds / size)} {name}"


def _number(value: float) -> str:
    """Return a number with three digits, and never as a power of ten."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{digits}f}"


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; fail where a table is out of date.")
def main(check: bool) -> None:
    """Write the tables of the README from the JSON files."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"
    if not check:
        README.write_text(new, encoding="utf-8")
        click.echo(f"wrote {README.name}")
    elif new != text:
        raise click.ClickException("the tables are out of date: python -m benchmarks.table")


if __name__ == "__main__":
    main()
