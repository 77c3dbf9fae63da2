"""The command line: ``python -m bsplib.apps.sql --help``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import bsplib
from bsplib.apps.command import ProgramRun, Programs, place_options
from bsplib.apps.progress import drawn
from bsplib.apps.sorting.oversampling import factor
from bsplib.apps.sql import arrow, story_table
from bsplib.apps.sql import table1 as table_1
from bsplib.apps.sql.arrow import pa
from bsplib.apps.sql.files import BLOCK, FORMATS, to_arrow, write_tables
from bsplib.apps.sql.generate import PAPER_SIZE, TRAN_PER_ITEM, Generator
from bsplib.apps.sql.paper import TABLE_1
from bsplib.apps.sql.plan import EXPERIMENTAL, PLANS, STAGES
from bsplib.apps.sql.program import ProcessAnswer, Source, files_in, main
from bsplib.apps.sql.queries import INPUTS, SQL
from bsplib.apps.sql.reference import difference, reference
from bsplib.apps.sql.relation import QueryError
from bsplib.apps.sql.story import STORY_SEED, STORY_SIZE, StorySetting, tell
from bsplib.command_options import force_option
from bsplib.extras import need
from bsplib.machine import load_machine
from bsplib.output_file import obstacle
from bsplib.profiler import format as fmt
from bsplib.visible import visible_lines

_CHUNK = 1_000_000
"""Number of rows that are made and written at a time."""
_FOLDER = click.Path(path_type=Path, file_okay=False)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Show what cannot be as one sentence on the command line."""
    try:
        yield
    except (QueryError, bsplib.UsageError) as error:
        raise click.ClickException(visible_lines(str(error))) from None


def _option(name: str, default: Any, kind: Any, text: str) -> Callable[..., Any]:
    """Return an option whose default is shown."""
    return click.option(name, default=default, show_default=True, type=kind, help=text)


def generator_options(
    *, size: int = PAPER_SIZE, seed: int = 0, skew: float = 1.3, per_item: int = TRAN_PER_ITEM
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a :class:`Generator`, with these defaults.

    The command receives it as ``generator``.

    Args:
        size: rows of TRAN.
        seed: of all random values.
        skew: exponent of the Zipf distribution.
        per_item: rows of TRAN for each row of ITEM.
    """
    zipf = "Exponent of the Zipf distribution of items in TRAN; 0 for an even one."
    items = f"Rows of ITEM.  [default: --size divided by {per_item}]"
    nulls = "Fraction of units and prices that are NULL."
    options = (
        _option("--size", size, click.IntRange(1), "Rows of TRAN."),
        _option("--seed", seed, click.IntRange(0), "Of all."),
        _option("--skew", skew, click.FloatRange(0), zipf),
        click.option("--items", type=click.IntRange(1), help=items),
        _option("--nulls", 0.0, click.FloatRange(0, 1), nulls),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_generator(**given: Any) -> Any:
            made = {field.name: given.pop(field.name) for field in fields(Generator)}
            made["items"] = made["items"] or max(made["size"] // per_item, 1)
            return command(generator=Generator(**made), **given)

        for option in reversed(options):
            with_generator = option(with_generator)
        return with_generator

    return decorate


@click.group(cls=Programs)
def cli() -> None:
    """Relational queries as a BSP program, after Jarvis et al. 2002, section 4."""


@cli.command()
@click.argument("folder", type=_FOLDER)
@generator_options()
@_option("--format", "parquet", click.Choice([form[1:] for form in FORMATS]), "Of the files.")
@force_option
def generate(folder: Path, generator: Generator, format: str, force: bool) -> None:  # noqa: A002
    """Write random relations ITEM, QNT and TRAN to files in FOLDER."""
    arrow.load()
    with _one_sentence():
        _check_free(folder, INPUTS, f".{format}", force=force)
        _make(folder)
        for name in INPUTS:
            path = folder / f"{name}.{format}"
            with drawn(f"making {name}") as told:
                rows = write_tables(_chunks(generator, name, told), path, force=force)
            click.echo(f"{path}: {rows} rows")


def _chunks(generator: Generator, name: str, told: Callable[[float], None]) -> Iterator[pa.Table]:
    total = generator.rows[name]
    for start in range(0, total, _CHUNK):
        stop = min(start + _CHUNK, total)
        yield to_arrow(generator.relation(name, np.arange(start, stop)))
        told(stop / total)


@cli.command()
@click.argument("folder", type=_FOLDER, required=False)
@generator_options()
@_option(
    "--stage",
    "owner",
    click.Choice(list(PLANS)),
    "Stage of the paper; or 'owner', the fast method, which sorts nothing.",
)
@click.option(
    "--oversampling",
    type=factor,
    help="Oversampling factor of the sorts, instead of the stage's: 1 or more, or 'theory'.",
)
@_option(
    "--block",
    BLOCK,
    click.IntRange(1),
    "Rows of a block: block i of a relation goes to process i mod p.",
)
@click.option(
    "-o", "--out", type=_FOLDER, help="Write TEMP1 to TEMP6 to this folder, as Parquet files."
)
@force_option
@click.option(
    *("--no-verify", "no_check"),
    is_flag=True,
    help="Do not compare with DuckDB.",
)
@place_options
@click.pass_context
def run(  # a command line
    context: click.Context,
    folder: Path | None,
    generator: Generator,
    out: Path | None,
    force: bool,
    no_check: bool,
    place: ProgramRun,
    **how: Any,
) -> None:
    """Evaluate the six queries over the relations in FOLDER, or over random ones.

    FOLDER holds ITEM, QNT and TRAN as .csv or .parquet files, with the columns that
    'schema' names.
    """
    arrow.load()
    if not no_check:
        need("duckdb")
    with _one_sentence():
        if out is not None:
            _make(out)  # rather than find out in the end that it cannot be
            _check_free(out, SQL, ".parquet", force=force)
        source = _source(context, folder, generator)
        answers = place.run(main, source, progress=True, **how)
        _show(answers)
        tables = {name: pa.concat_tables([a.tables[name] for a in answers]) for name in SQL}
        if not no_check:
            _compare(tables, source, len(answers))
        if out is not None:
            for name, table in tables.items():
                write_tables([table], out / f"{name}.parquet", force=force)
            click.echo(f"wrote {', '.join(tables)} to {out}")


def _source(context: click.Context, folder: Path | None, generator: Generator) -> Source:
    if folder is None:
        return generator
    by_user = click.core.ParameterSource.COMMANDLINE
    options = [field.name for field in fields(Generator)]
    said = [name for name in options if context.get_parameter_source(name) is by_user]
    if said:
        raise click.UsageError(f"--{said[0]} is for random relations; those of {folder} are there")
    return files_in(folder)


def _show(answers: Sequence[ProcessAnswer]) -> None:
    """Show the number of rows, the balance and the time of each query, and who has no input."""
    table = Table("query", box=SIMPLE_HEAD)
    for title in ("rows", "most on one process", "time"):
        table.add_column(title, justify="right")
    for name in SQL:
        rows = [answer.rows[name] for answer in answers]
        most = f"{max(rows) * len(rows) / sum(rows):.2f} n/p" if sum(rows) else "-"
        took = max(answer.seconds[name] for answer in answers)
        table.add_row(name, f"{sum(rows):,}", most, fmt.seconds(took))
    Console().print(table)
    for name in INPUTS:
        rows = [answer.rows[name] for answer in answers]
        if idle := rows.count(0):
            click.echo(f"{name} has {sum(rows):,} rows: none on {idle} of {len(rows)} processes")


def _compare(tables: Mapping[str, pa.Table], source: Source, nprocs: int) -> None:
    with drawn("comparing with DuckDB"):
        expected = reference(source)
    for name, table in tables.items():
        found = difference(table, expected[name])
        if found is not None:
            raise click.ClickException(f"{name} is not what DuckDB makes of it: {found}")
    click.echo(f"{nprocs} processes made the rows that DuckDB makes in one")


def _check_free(folder: Path, names: Iterable[str], suffix: str, *, force: bool) -> None:
    """Check that no file of these names is in a folder, before the rows are made."""
    for name in names:
        if folder.is_dir() and (reason := obstacle(folder / f"{name}{suffix}", force=force)):
            raise QueryError(reason)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QueryError(f"{folder} cannot be made: {error.strerror}") from None


@cli.command()
def schema() -> None:
    """Show the relations and the queries, in SQL."""
    table = Table("column", "is", "read by the queries", box=SIMPLE_HEAD)
    for name, read in INPUTS.items():
        for column, made in Generator(1).relation(name).columns.items():
            table.add_row(f"{name}.{column}", made.kind, "yes" if column in read else "")
    Console().print(table)
    table = Table("makes", "query", box=SIMPLE_HEAD)
    for name, text in SQL.items():
        table.add_row(name, text)
    Console().print(table)


@cli.command()
@generator_options(size=STORY_SIZE, seed=STORY_SEED, skew=0.0, per_item=4)
@click.option("-n", "--nprocs", default=16, show_default=True, type=click.IntRange(1))
@click.option(
    "--machine",
    default="shared-memory",
    show_default=True,
    metavar="NAME",
    help="Machine that prices communication; a name or a .toml file.",
)
@click.option(
    "--block",
    type=click.IntRange(1),
    help=f"Rows of a block.  [default: {BLOCK} for a size of {PAPER_SIZE}, and in proportion]",
)
@_option(
    "--oversampling",
    EXPERIMENTAL,
    factor,
    "Oversampling factor of the first two stages, found by experiment.",
)
@click.option(
    *("-o", "--out"),
    default=Path("out"),
    show_default=True,
    type=_FOLDER,
    help="Folder for the traces.",
)
def story(generator: Generator, out: Path, block: int | None, machine: str, **how: Any) -> None:
    """Repeat the four stages of the paper, and compare them with the paper's figures.

    By default there are a hundred times as many records as in the paper's Table 1, so that
    the sample of the theoretical factor is a part of the rows, and not all of them.
    """
    arrow.load()
    block = block or -(-BLOCK * generator.size // PAPER_SIZE)
    with _one_sentence():
        setting = StorySetting(
            generator=generator, block=block, machine=load_machine(machine), **how
        )
        setting.machine.need("l")
        _make(out)
        with drawn("running four stages") as told:
            done = itertools.count(1)
            figures = tell(setting, out, lambda: told(next(done) / len(STAGES)))
    story_table.show(setting, figures)


@cli.command()
@generator_options(size=table_1.TABLE_SIZE, seed=STORY_SEED, skew=0.0, per_item=4)
@click.option(
    "-n",
    "--nprocs",
    "procs",
    default=tuple(TABLE_1["Cray T3E"]),
    show_default=True,
    multiple=True,
    type=click.IntRange(1),
    help="Numbers of processors; 1 is always among them.",
)
def table1(generator: Generator, procs: tuple[int, ...]) -> None:
    """Price the first and the last stage on three Machines, as in the paper's Table 1."""
    arrow.load()
    counts = sorted({1, *procs})
    block = -(-BLOCK * generator.size // PAPER_SIZE)
    with _one_sentence(), drawn("running both stages") as told:
        done = itertools.count(1)
        rows = table_1.measure(generator, block, counts, lambda: told(next(done) / len(counts)))
    table_1.show(generator, rows)
