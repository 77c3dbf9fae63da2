"""The command line: ``python -m bsplib.apps.sql --help``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

import bsplib
from bsplib.apps.command import ProgramRun, Programs, place_options
from bsplib.apps.progress import drawn
from bsplib.apps.sorting.oversampling import Factor
from bsplib.apps.sql import arrow, show, story_table, table1_view
from bsplib.apps.sql.arrow import pa
from bsplib.apps.sql.errors import QueryError
from bsplib.apps.sql.files import FORMATS, to_arrow, write_tables
from bsplib.apps.sql.generate import PAPER_SIZE, TRAN_PER_ITEM, Generator
from bsplib.apps.sql.paper import TABLE_1
from bsplib.apps.sql.plan import EXPERIMENTAL, PLANS, STAGES
from bsplib.apps.sql.program import Source, files_in, main
from bsplib.apps.sql.queries import INPUTS, SQL
from bsplib.apps.sql.reference import difference, reference
from bsplib.apps.sql.scan import BLOCK
from bsplib.apps.sql.story import STORY_SEED, STORY_SIZE, StorySetting, tell
from bsplib.apps.sql.table1 import TABLE_SIZE, measure
from bsplib.command_options import force_option
from bsplib.machine import load_machine
from bsplib.output_file import obstacle
from bsplib.visible import visible_lines

_CHUNK = 1_000_000
"""Number of rows that are made and written at a time."""
_FOLDER = click.Path(path_type=Path, file_okay=False)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Show a QueryError as one sentence on the command line."""
    try:
        yield
    except QueryError as error:
        raise click.ClickException(visible_lines(str(error))) from None


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

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_generator(
            size: int, seed: int, skew: float, items: int | None, nulls: float, **more: Any
        ) -> Any:
            items = items or max(size // per_item, 1)
            return command(generator=Generator(size, seed, skew, items, nulls), **more)

        for option in reversed(_generator_options(size, seed, skew, per_item)):
            with_generator = option(with_generator)
        return with_generator

    return decorate


def _generator_options(
    size: int, seed: int, skew: float, per_item: int
) -> Sequence[Callable[..., Any]]:
    return (
        click.option(
            "--size",
            default=size,
            show_default=True,
            type=click.IntRange(1),
            help="Rows of TRAN.",
        ),
        click.option(
            "--seed", default=seed, show_default=True, type=click.IntRange(0), help="Of all."
        ),
        click.option(
            "--skew",
            default=skew,
            show_default=True,
            type=click.FloatRange(0),
            help="Exponent of the Zipf distribution of items in TRAN; 0 for an even one.",
        ),
        click.option(
            "--items",
            type=click.IntRange(1),
            help=f"Rows of ITEM.  [default: --size divided by {per_item}]",
        ),
        click.option(
            "--nulls",
            default=0.0,
            show_default=True,
            type=click.FloatRange(0, 1),
            help="Fraction of units and prices that are NULL.",
        ),
    )


_GENERATED = ("size", "seed", "skew", "items", "nulls")


@click.group(cls=Programs)
def cli() -> None:
    """Relational queries as a BSP program, after Jarvis et al. 2002, section 4."""


@cli.command()
@click.argument("folder", type=_FOLDER)
@generator_options()
@click.option(
    "--format",
    "form",
    default="parquet",
    show_default=True,
    type=click.Choice([form[1:] for form in FORMATS]),
    help="Format of the files.",
)
@force_option
def generate(folder: Path, generator: Generator, form: str, force: bool) -> None:
    """Write random relations ITEM, QNT and TRAN to files in FOLDER."""
    arrow.load()
    with _one_sentence():
        _check_free(folder, INPUTS, f".{form}", force=force)
        for name in INPUTS:
            rows = _write(generator, name, folder, form, force=force)
            click.echo(f"{folder / name}.{form}: {rows} rows")


def _write(generator: Generator, name: str, folder: Path, form: str, *, force: bool) -> int:
    _make(folder)
    total = generator.rows[name]
    with drawn(f"making {name}") as tell:

        def chunks() -> Iterator[pa.Table]:
            for start in range(0, total, _CHUNK):
                stop = min(start + _CHUNK, total)
                yield to_arrow(generator.relation(name, np.arange(start, stop)))
                tell(stop / total)

        return write_tables(chunks(), folder / f"{name}.{form}", force=force)


@cli.command()
@click.argument("folder", type=_FOLDER, required=False)
@generator_options()
@click.option(
    "--stage",
    default="owner",
    show_default=True,
    type=click.Choice(list(PLANS)),
    help="Stage of the paper; or 'owner', the fast method, which sorts nothing.",
)
@click.option(
    "--oversampling",
    type=Factor(),
    help="Oversampling factor of the sorts, instead of the stage's: 1 or more, or 'theory'.",
)
@click.option(
    "--block",
    default=BLOCK,
    show_default=True,
    type=click.IntRange(1),
    help="Rows of a block: block i of a relation goes to process i mod p.",
)
@click.option(
    "-o", "--out", type=_FOLDER, help="Write TEMP1 to TEMP6 to this folder, as Parquet files."
)
@force_option
@click.option(
    *("--no-verify", "no_check"),
    is_flag=True,
    help="Do not compare with the reference.",
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
    with _one_sentence():
        if out is not None:
            _make(out)  # rather than find out in the end that it cannot be
            _check_free(out, SQL, ".parquet", force=force)
        source = _source(context, folder, generator)
        answers = place.run(main, source, progress=True, **how)
        show.queries(answers)
        show.idle(answers)
        tables = {name: pa.concat_tables([a.tables[name] for a in answers]) for name in SQL}
        if not no_check:
            _compare(tables, source, len(answers))
        if out is not None:
            _keep(tables, out, force=force)


def _source(context: click.Context, folder: Path | None, generator: Generator) -> Source:
    if folder is None:
        return generator
    said = [
        name
        for name in _GENERATED
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if said:
        raise click.UsageError(f"--{said[0]} is for random relations; those of {folder} are there")
    return files_in(folder)


def _compare(tables: dict[str, pa.Table], source: Source, nprocs: int) -> None:
    with drawn("comparing with Arrow"):
        expected = reference(source)
    for name, table in tables.items():
        found = difference(table, expected[name])
        if found is not None:
            raise click.ClickException(f"{name} is not what Arrow makes of it: {found}")
    click.echo(f"{nprocs} processes made the rows that Arrow makes in one")


def _keep(tables: dict[str, pa.Table], folder: Path, *, force: bool) -> None:
    for name, table in tables.items():
        write_tables([table], folder / f"{name}.parquet", force=force)
    click.echo(f"wrote {', '.join(tables)} to {folder}")


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
    show.schema()


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
@click.option(
    "--oversampling",
    default=EXPERIMENTAL,
    show_default=True,
    type=Factor(),
    help="Oversampling factor of the first two stages, found by experiment.",
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
    with _one_sentence_for_a_machine():
        setting = StorySetting(
            generator=generator, block=block, machine=load_machine(machine), **how
        )
        setting.machine.need("l")
    with _one_sentence(), drawn("running four stages") as told:
        _make(out)
        done = itertools.count(1)
        figures = tell(setting, out, lambda: told(next(done) / len(STAGES)))
    story_table.show(setting, figures)


@cli.command()
@generator_options(size=TABLE_SIZE, seed=STORY_SEED, skew=0.0, per_item=4)
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
        rows = measure(generator, block, counts, lambda: told(next(done) / len(counts)))
    table1_view.show(generator, rows)


@contextmanager
def _one_sentence_for_a_machine() -> Iterator[None]:
    try:
        yield
    except bsplib.UsageError as error:
        raise click.ClickException(visible_lines(str(error))) from None
