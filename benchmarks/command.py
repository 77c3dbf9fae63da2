"""The command line of one benchmark, or of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from benchmarks import mpi, table, terminal
from benchmarks.harness import RESULTS, TRIALS, Section, measure, measure_again
from benchmarks.report import documents, goals


@dataclass(frozen=True)
class Benchmark:
    """Sections whose results are stored in one JSON file."""

    name: str
    sections: Sequence[Section]

    def only(self, text: str) -> Benchmark:
        """Return the benchmark with only those sections whose titles contain a text."""
        kept = [part for part in self.sections if text.casefold() in part.title.casefold()]
        return Benchmark(self.name, kept)

    def quick(self) -> Benchmark:
        """Return the benchmark with few repeats."""
        return Benchmark(self.name, [section.quick() for section in self.sections])


def run(benchmarks: Sequence[Benchmark]) -> None:
    """Measure with the options of the command line."""
    one = f".bench_{benchmarks[0].name}" if len(benchmarks) == 1 else ""
    _command(benchmarks)(prog_name=f"python -m benchmarks{one}")


def _command(benchmarks: Sequence[Benchmark]) -> click.Command:
    @click.command(help=_help(benchmarks))
    @click.option("--quick", is_flag=True, help="Take only three turns, for rough figures.")
    @click.option("--only", metavar="TEXT", help="Measure only sections with TEXT in their titles.")
    @click.option("--keep", is_flag=True, help="Replace those sections in benchmarks/results.")
    def command(quick: bool, only: str | None, keep: bool) -> None:
        if mpi.absence():
            click.echo(mpi.absence(), err=True)
        if keep:
            _keep(benchmarks, _chosen(benchmarks, quick, only or ""))
        elif quick or only is not None:
            _try(_chosen(benchmarks, quick, only or ""))
        else:
            for benchmark in benchmarks:
                measure(benchmark.name, benchmark.sections, RESULTS)
            table.write()

    return command


def _help(benchmarks: Sequence[Benchmark]) -> str:
    what = ", ".join(benchmark.name for benchmark in benchmarks)
    return (
        f"Measure: {what}. Show which goals are met.\n\n"
        "The figures are written to benchmarks/results and into benchmarks/README.md. With "
        "--quick or --only they are shown, and written to out/benchmarks instead, unless --keep is "
        "given, too: then each section stands in its file with the circumstances of its own."
    )


def _chosen(benchmarks: Sequence[Benchmark], quick: bool, only: str) -> list[Benchmark]:
    chosen = [each.only(only) for each in benchmarks]
    if not any(each.sections for each in chosen):
        titles = "\n".join(part.title for each in benchmarks for part in each.sections)
        raise click.UsageError(f"no section has {only!r} in its title; the titles are:\n{titles}")
    return [each.quick() if quick else each for each in chosen if each.sections]


def _keep(benchmarks: Sequence[Benchmark], chosen: Sequence[Benchmark]) -> None:
    titles = {each.name: [part.title for part in each.sections] for each in benchmarks}
    for each in chosen:
        measure_again(each.name, each.sections, titles[each.name], RESULTS)
    table.write()


def _try(benchmarks: Sequence[Benchmark]) -> None:
    names = {measure(each.name, each.sections, TRIALS).stem for each in benchmarks}
    found = [each for each in documents(TRIALS) if each["benchmark"] in names]
    terminal.show_figures(found)
    terminal.show_goals(goals(found))
