"""The stages of the paper: the same queries, with better balance from stage to stage.

Every stage is run once on virtual processors and recorded. Its computation is counted by rows
(:mod:`bsplib.apps.work`), so that it is the same in every run, as the h-relations are. The cost of
a part is that of the BSP model on a Machine: w + h g + l, summed over its supersteps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bsplib
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import STAGES
from bsplib.apps.sql.program import main
from bsplib.machine import Machine
from bsplib.profiler.costs import Summary
from bsplib.profiler.critical import score
from bsplib.profiler.models.prediction import Prediction, predict
from bsplib.profiler.prices import choose_prices
from bsplib.recording.trace import read_trace

STORY_SIZE = 1_200_000
STORY_SEED = 2
"""Rows of TRAN, and the seed of the default story. The paper names neither its keys nor the
factors of the sort. Size, blocks, the small factor and the seed were chosen so that the
imbalances which the paper starts from (original, input balanced) are like the paper's; what its
remedies do to them, and their costs, are results."""
MODEL = "BSP"
PATH = "h-imb"
SORT = "sample_sort.py"
SQL_PROCESS = ("sql_process", "queries.py")
BSPSORT = ("bspsort", "sorting.py")
STAGES_2_TO_4 = ("collect_sample", "sort_sample", "broadcast_pivots")


@dataclass(frozen=True)
class StorySetting:
    """Options of the stages."""

    generator: Generator
    nprocs: int
    machine: Machine
    block: int
    oversampling: float
    """Oversampling factor of the first two stages, found by experiment."""


@dataclass(frozen=True)
class StageFigures:
    """The results of one stage."""

    stage: str
    trace: Path
    sql_h: Summary
    sql_comp: Summary
    sample_h: Summary
    """h of stages 2 and 3 of the sort."""
    exchange_h: Summary
    """h of stage 6."""
    merge_comp: Summary
    """Computation of stage 7."""
    sort_h: float
    """Sum of the greatest h of all sorts, in bytes of max(in, out)."""
    queries_h: float
    """The same of the six queries."""
    total_h: float
    """The same of the six queries and of balancing the input before them."""
    sample_s: float
    """Cost of stages 2 to 4."""
    exchange_s: float
    """Cost of stages 5 to 7. Stage 5 has no superstep: its computation is in that of stage 6."""
    sort_s: float
    """Cost of all sorts."""
    total_s: float
    """Cost of balancing the input and of the six queries."""
    rows_of_tran: tuple[int, ...]
    """Number of rows on each process before the first query."""
    path: tuple[str, ...]
    """The critical path of the imbalance of h in the queries: names of functions and a line."""


def tell(
    setting: StorySetting, folder: Path, advance: Callable[[], object] = lambda: None
) -> list[StageFigures]:
    """Run all stages, and write a trace of each into a folder.

    Args:
        setting: options of the stages.
        folder: existing folder for ``sql-1-original.bsp`` and so on.
        advance: is called after each stage.
    """
    figures = []
    for number, stage in enumerate(STAGES, 1):
        path = folder / f"sql-{number}-{stage}.bsp"
        rows = run_stage(setting, stage, path)
        figures.append(_figures(stage, path, rows))
        advance()
    return figures


def run_stage(setting: StorySetting, stage: str, path: Path) -> tuple[int, ...]:
    """Run a stage, and record it; return how many rows of TRAN each process has."""
    sort = STAGES[stage].sort
    assert sort is not None
    answers = bsplib.run(
        main,
        setting.generator,
        stage=stage,
        oversampling=None if sort.oversampling == "theory" else setting.oversampling,
        block=setting.block,
        seed=setting.generator.seed,
        keep=(),
        nprocs=setting.nprocs,
        backend="sim",
        machine=setting.machine,
        profile=path,
    )
    return tuple(answer.rows["TRAN"] for answer in answers)


def _figures(stage: str, trace: Path, rows: tuple[int, ...]) -> StageFigures:
    (run,) = read_trace(trace).runs
    found = _Found(predict(run, choose_prices(run), [MODEL]))
    queries, sorts = found.node(*SQL_PROCESS), found.node(*BSPSORT)
    balancing, exchange = found.node("balance_inputs", "program.py"), found.node("exchange", SORT)
    sample = found.node("sort_sample" if stage == "bitonic" else "collect", SORT)
    end = found.end_of_sort()
    queries_h = found.summary(queries, "h")
    return StageFigures(
        stage=stage,
        trace=trace,
        sql_h=queries_h,
        sql_comp=found.summary(queries, "comp"),
        sample_h=found.summary(sample, "h"),
        exchange_h=found.summary(exchange, "h"),
        merge_comp=found.summary(end, "comp"),
        sort_h=found.summary(sorts, "h").maximum,
        queries_h=queries_h.maximum,
        total_h=found.summary(balancing, "h").maximum + queries_h.maximum,
        sample_s=sum(found.cost_s(found.node(name, SORT)) for name in STAGES_2_TO_4),
        exchange_s=found.cost_s(exchange) + found.cost_s(end),
        sort_s=found.cost_s(sorts),
        total_s=found.cost_s(balancing) + found.cost_s(queries),
        rows_of_tran=rows,
        path=found.path(),
    )


_NOTHING = Summary(0.0, 0.0, 0.0, ())


class _Found:
    """The costs of a run, by the names of functions; 0 of one that ended no superstep."""

    def __init__(self, prediction: Prediction) -> None:
        self._callgraph = prediction.callgraph
        self._graph = prediction.callgraph.graph
        self._nodes = dict(self._graph.nodes(data="node"))
        self._parts = prediction.nodes[MODEL]

    def node(self, function: str, file: str) -> str | None:
        """Return the node of a function."""
        wanted = "function", function
        found = (
            name
            for name, node in self._nodes.items()
            if (node.kind, node.name) == wanted and node.file.endswith(file)
        )
        return next(found, None)

    def end_of_sort(self) -> str | None:
        """Return the node of the sync of ``bspsort`` itself, at the end of stage 7."""
        following = self._graph.successors(self.node(*BSPSORT))
        return next(name for name in following if self._nodes[name].kind == "cost_centre")

    def summary(self, node: str | None, metric: str) -> Summary:
        """Return the summary of a metric for a node."""
        found: Summary = self._graph.nodes[node]["cost"][metric] if node else _NOTHING
        return found

    def cost_s(self, node: str | None) -> float:
        """Return the cost of a node under the model."""
        return self._parts[node].total_s if node else 0.0

    def path(self) -> tuple[str, ...]:
        """Return the critical path of the imbalance of h, from the queries on.

        Balancing the input is uneven by its nature, and no part of them.
        """
        queries = self.node(*SQL_PROCESS)
        assert queries is not None
        chain = [self._callgraph.root, queries]
        while following := self._callgraph.onward(chain):
            scores = {name: score(cost, PATH) for name, cost in following.items()}
            chain.append(max(scores, key=scores.__getitem__))
        return tuple(self._nodes[node].name for node in chain[1:])
