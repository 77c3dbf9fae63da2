"""The stages of the SQL paper over ten seeds: what of one run is chance, and what holds.

Each seed makes other keys and draws other samples. The runs are recorded on virtual processors,
and what they moved and computed is kept in ``seeds.csv``, from which costs on any Machine follow:
a sort costs w + h g + l for each superstep. ``bsp papers --seeds FILE`` makes the runs again.
"""

from __future__ import annotations

import csv
import io
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bsplib.apps.sorting.oversampling import theoretical_oversampling
from bsplib.apps.sql.files import BLOCK
from bsplib.apps.sql.generate import PAPER_SIZE, Generator
from bsplib.apps.sql.paper import MACHINES
from bsplib.apps.sql.plan import EXPERIMENTAL, STAGES
from bsplib.apps.sql.story import MODEL, STORY_SIZE, StageFigures, StorySetting, tell
from bsplib.apps.work import COMPARISON_S, SPEED
from bsplib.machine import Machine, load_machine
from bsplib.profiler.models.prediction import predict
from bsplib.profiler.prices import ReplayPrices
from bsplib.recording.trace import read_trace

SEEDS = 10
PAPERS_OWN = MACHINES["Cray T3E"]
"""The Machine of the paper's figures, with the speed and l that are assumed for its Table 1."""
HERE = "shared-memory"
BALANCES = ("sql_h", "sql_comp", "sample_h", "exchange_h", "merge_comp")
_UNITS = {rule: Machine("units", "1 s each", g=1e-9, l=1e-9, h=rule) for rule in ("max", "sum")}


class StageRow(NamedTuple):
    """What one stage of one seed moved and computed; balances are in percent of the maximum."""

    seed: int
    stage: str
    balances: dict[str, tuple[int, int]]
    imbalance_h: float
    """Imbalance of h of the queries, in bytes: maximum - average."""
    queries_h: float
    """h of the queries, in bytes: the sum of the greatest values."""
    average_h: float
    sort_w: float
    """Seconds of computation in all sorts, on the computer of :mod:`bsplib.apps.work`."""
    sort_h: float
    """Bytes of all sorts, by the rule ``max``."""
    sort_h_sum: float
    sort_steps: float

    def gain_by_balance(self, before: StageRow) -> float:
        """Return the gain in h of the queries that comes from balance alone, as a fraction.

        The greatest h is the average h divided by the balance; see
        :func:`bsplib.apps.sql.story_table.by_balance`.
        """
        most = self.average_h + self.imbalance_h, before.average_h + before.imbalance_h
        return 1 - (before.average_h / most[1]) / (self.average_h / most[0])

    def sort_s(self, machine: Machine) -> float:
        """Return the cost of all sorts on a Machine: w + h g + l for each superstep."""
        ratio = 1.0 if machine.speed is None else SPEED / machine.speed
        h = self.sort_h_sum if machine.h == "sum" else self.sort_h
        return ratio * self.sort_w + h * machine.g + self.sort_steps * machine.need("l")


def measure(seeds: Iterable[int], advance: Callable[[], object] = lambda: None) -> list[StageRow]:
    """Run all stages with each seed.

    Args:
        seeds: of keys and samples.
        advance: is called after each stage.
    """
    return [row for seed in seeds for row in stages_of(seed, advance)]


def stages_of(
    seed: int, advance: Callable[[], object] = lambda: None, size: int = STORY_SIZE
) -> list[StageRow]:
    """Run all stages with one seed."""
    generator = Generator(size, seed, 0.0, size // 4)
    block = max(BLOCK * size // PAPER_SIZE, 1)
    setting = StorySetting(generator, 16, load_machine(HERE), block, EXPERIMENTAL)
    with tempfile.TemporaryDirectory(prefix="bsp-seeds-") as folder:
        return [_row(seed, told) for told in tell(setting, Path(folder), advance)]


def _row(seed: int, told: StageFigures) -> StageRow:
    costs = {rule: _sort_costs(told.trace, unit) for rule, unit in _UNITS.items()}
    w, h, steps = costs["max"]
    return StageRow(
        seed,
        told.stage,
        {name: getattr(told, name).percentages() for name in BALANCES},
        told.sql_h.maximum - told.sql_h.average,
        told.queries_h,
        told.sql_h.average,
        w,
        h,
        costs["sum"][1],
        steps,
    )


def _sort_costs(trace: Path, unit: Machine) -> tuple[float, float, float]:
    """Return seconds of computation, bytes and supersteps of all sorts of a recorded run."""
    (run,) = read_trace(trace).runs
    found = predict(run, ReplayPrices(unit), [MODEL])
    nodes = found.callgraph.graph.nodes(data="node")
    (name,) = (name for name, node in nodes if (node.kind, node.name) == ("function", "bspsort"))
    parts = found.nodes[MODEL][name]
    return parts.comp_s, round(parts.comm_s / unit.g), round(parts.sync_s / unit.need("l"))


# -- the file -------------------------------------------------------------------------------------

_NUMBERS = StageRow._fields[3:]
_HEAD = ("seed", "stage", *(f"{name} {end}" for name in BALANCES for end in ("avg", "min")))


def as_text(rows: Iterable[StageRow]) -> str:
    """Return the rows as CSV; :func:`read` reads it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_HEAD, *_NUMBERS))
    for row in rows:
        balances = [each for name in BALANCES for each in row.balances[name]]
        numbers = (f"{getattr(row, name):.9g}" for name in _NUMBERS)
        writer.writerow((row.seed, row.stage, *balances, *numbers))
    return text.getvalue()


def read(text: str | None = None) -> list[StageRow]:
    """Return the rows of a text, or those that come along."""
    if text is None:
        text = files("bsplib.apps.papers").joinpath("seeds.csv").read_text(encoding="utf-8")
    return list(_parsed(text))


def _parsed(text: str) -> Iterator[StageRow]:
    for cells in csv.DictReader(text.splitlines(), strict=True):
        balances = {
            name: (int(cells[f"{name} avg"]), int(cells[f"{name} min"])) for name in BALANCES
        }
        numbers = (float(cells[name]) for name in _NUMBERS)
        yield StageRow(int(cells["seed"]), cells["stage"], balances, *numbers)


# -- distributions --------------------------------------------------------------------------------


def by_stage(rows: Iterable[StageRow]) -> dict[str, list[StageRow]]:
    """Return the rows of each stage, by seed."""
    found: dict[str, list[StageRow]] = {stage: [] for stage in STAGES}
    for row in sorted(rows, key=lambda each: each.seed):
        found[row.stage].append(row)
    return found


def spread(values: Iterable[float], sign: str = "") -> str:
    """Return the median of percentages, and their range, as text."""
    known = sorted(values)
    shown = (round(each) for each in (median(known), known[0], known[-1]))
    middle, least, most = (f"{each:{sign}d}%" for each in shown)
    return f"{middle} ({least} to {most})"


def gains(rows: Iterable[StageRow], stage: str, machine: Machine) -> list[float]:
    """Return the gain of the sorts over those with balanced input, in percent, for each seed."""
    found = by_stage(rows)
    return [
        100 * (1 - now.sort_s(machine) / before.sort_s(machine))
        for before, now in zip(found["balanced"], found[stage], strict=True)
    ]


def machines() -> dict[str, Machine]:
    """Return the Machines on which sorts are priced: the paper's own first."""
    t3e, here = load_machine(PAPERS_OWN), load_machine(HERE)
    return {
        "Cray T3E": t3e,
        "its network with the cores of here": replace(t3e, speed=SPEED),
        here.label: replace(here, speed=SPEED),
    }


# -- where it pays that all processes sort the sample of a sample sort, in place of one: a map ----
#
# With s p samples of each of p processes, samples of c bytes, and K = k (k + 1)/2, k = log2 p:
#
# ======== ========== ================ =================================
# who      supersteps h in bytes       comparisons
# ======== ========== ================ =================================
# one      1          (p - 1) s p c    s p^2 log2 p, on this process
# all      K          s p c each       s p in each superstep
# ======== ========== ================ =================================
#
# So all of them always compare less. They send less from p = 8 on where h is the greater of in and
# out, and from p = 32 on where it is their sum, since then it counts twice in the network. They pay
# K - 1 times l. What both do alike is left out.
#
# Source: Jarvis et al. 2002, section 4.3; :mod:`bsplib.apps.sorting.sample_sort` for the costs.

SAMPLE_BYTES = 16
"""A key of 8 B and its origin."""


def saved_s(machine: Machine, nprocs: int, size: int) -> tuple[float, float]:
    """Return what the network saves in computation and transfers, and how often it pays l more.

    Args:
        machine: gives g, its rule for h, and the speed; without one that of here.
        nprocs: p, a power of two.
        size: number of keys, which determines the theoretical factor.
    """
    own = theoretical_oversampling(size, nprocs) * nprocs
    k = round(math.log2(nprocs))
    steps = k * (k + 1) // 2
    ratio = 1.0 if machine.speed is None else SPEED / machine.speed
    compared = own * (nprocs * k - steps)
    both_ways = 2 if machine.h == "sum" else 1
    moved = SAMPLE_BYTES * own * (nprocs - 1 - both_ways * steps)
    return ratio * COMPARISON_S * compared + machine.g * moved, steps - 1.0


def gain_s(machine: Machine, nprocs: int, size: int) -> float:
    """Return the seconds by which the network is faster; negative where it is slower."""
    saved, more = saved_s(machine, nprocs, size)
    return saved - more * machine.need("l")


def greatest_l(machine: Machine, nprocs: int, size: int) -> float:
    """Return the l up to which the network pays; 0 where it does with none."""
    saved, more = saved_s(machine, nprocs, size)
    if not more:
        return math.inf if saved > 0 else 0.0
    return max(saved / more, 0.0)
