"""The program: read the relations, evaluate the six queries, and return their results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bsplib
from bsplib.apps.progress import steps
from bsplib.apps.sql.arrow import pa
from bsplib.apps.sql.exchange import rebalance
from bsplib.apps.sql.files import BLOCK, FORMATS, scan, to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import plan_of
from bsplib.apps.sql.queries import INPUTS, SQL, sql_process
from bsplib.apps.sql.relation import QueryError, Relation
from bsplib.apps.work import charge_values

Source = int | Generator | Mapping[str, "pa.Table | Path | str"]
"""Rows of TRAN to make; a generator; or a table or file for ITEM, QNT and TRAN each."""


class ProcessAnswer(NamedTuple):
    """The result of a process."""

    tables: dict[str, pa.Table]
    """Its rows of each requested relation."""
    rows: dict[str, int]
    """How many rows it has of each relation."""
    seconds: dict[str, float]
    """The time of each query on this process, including waits for others."""


def main(  # each has a name at the call
    bsp: bsplib.Group,
    source: Source,
    *,
    stage: str = "owner",
    oversampling: float | str | None = None,
    block: int = BLOCK,
    seed: int = 0,
    keep: tuple[str, ...] = tuple(SQL),
    progress: bool = False,
) -> ProcessAnswer:
    """Evaluate the six queries.

    Args:
        bsp: the group.
        source: where ITEM, QNT and TRAN come from; the same on all processes.
        stage: a stage of the paper's story, or ``owner`` for the fast way: a key of
            :data:`bsplib.apps.sql.plan.PLANS`.
        oversampling: oversampling factor of the sorts, instead of that of the stage.
        block: rows of a block: block i of a relation goes to process i mod p.
        seed: seed of relations that are generated, and of the samples of the sorts.
        keep: names of the relations to return, from TEMP1 to TEMP6.
        progress: whether to show a progress bar.

    Returns:
        The rows of this process, and the times of the queries.

    Raises:
        QueryError: there is no such stage, a file cannot be read, or a column is missing
            or of another kind.

    Cost: of :func:`bsplib.apps.sql.queries.sql_process`.
    Source: Jarvis et al. 2002, section 4.
    """
    plan = plan_of(stage, oversampling, seed)
    inputs = read_inputs(bsp, source, block=block, seed=seed, whole=plan.sort is not None)
    if plan.balance:
        inputs = balance_inputs(bsp, inputs)
    began: list[tuple[str, float]] = []
    with steps(bsp, len(SQL), shown=progress) as step:

        def begin(name: str) -> None:
            began.append((name, bsp.time()))
            step(name)

        temp = sql_process(bsp, inputs, plan, begin=begin)
    ends = [time for _, time in began[1:]] + [bsp.time()]
    return ProcessAnswer(
        {name: to_arrow(temp[name]) for name in keep},
        {name: relation.rows for name, relation in {**inputs, **temp}.items()},
        {name: end - start for (name, start), end in zip(began, ends, strict=True)},
    )


def read_inputs(
    bsp: bsplib.Group,
    source: Source,
    *,
    block: int = BLOCK,
    seed: int = 0,
    whole: bool = False,
) -> dict[str, Relation]:
    """Read or make the blocks of ITEM, QNT and TRAN that fall to this process.

    Args:
        bsp: the group.
        source: where they come from, as for :func:`main`.
        block: rows of a block.
        seed: seed of relations that are generated.
        whole: whether to keep all columns, or only those of ``INPUTS``.
    """
    bsp.charge(0.0)  # from here on virtual time counts rows
    if isinstance(source, int):
        source = Generator(source, seed)
    if isinstance(source, Generator):
        made = {name: _made(bsp, source, name, block) for name in INPUTS}
        return made if whole else {name: made[name].only(INPUTS[name]) for name in INPUTS}
    missing = [name for name in INPUTS if name not in source]
    if missing:
        raise QueryError(f"there is no relation {missing[0]}; the queries read {', '.join(INPUTS)}")
    return {
        name: scan(bsp, source[name], None if whole else columns, block=block)
        for name, columns in INPUTS.items()
    }


def balance_inputs(bsp: bsplib.Group, inputs: Mapping[str, Relation]) -> dict[str, Relation]:
    """Give every process as many rows of each relation as every other: 2 supersteps each.

    Source: Jarvis et al. 2002, section 4.1.
    """
    return {name: rebalance(bsp, relation) for name, relation in inputs.items()}


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files of the relations in a folder: ``ITEM.csv`` or ``ITEM.parquet``, and so on.

    Raises:
        QueryError: one is not there.
    """
    found = {}
    for name in INPUTS:
        there = [path for form in FORMATS if (path := folder / f"{name}{form}").is_file()]
        if not there:
            raise QueryError(
                f"{folder} holds neither {' nor '.join(f'{name}{form}' for form in FORMATS)}; "
                f"make them with: python -m bsplib.apps.sql generate {folder}"
            )
        found[name] = there[0]
    return found


def _made(bsp: bsplib.Group, generator: Generator, name: str, block: int) -> Relation:
    if block < 1:
        raise QueryError(f"a block cannot have {block} rows; it has 1 or more")
    places = np.arange(generator.rows[name])
    mine = places[places // block % bsp.nprocs == bsp.pid]
    relation = generator.relation(name, mine)
    charge_values(bsp, relation.values)
    return relation
