"""The entries: what a paper prints, what is computed here, and why the two differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import bsplib
from bsplib.apps.fourier.experiment import printed_predictions
from bsplib.apps.fourier.published import TABLE_3
from bsplib.apps.papers import seeds
from bsplib.apps.papers.msteps.model import CONSTANTS, PVM, VALUES, error_percent, fft_time
from bsplib.apps.papers.speedup import buffers
from bsplib.apps.papers.speedup.laws import fit_parts
from bsplib.apps.papers.speedup.overheads import (
    BARRIER,
    BARRIER_PVM_MS,
    CREATION,
    CREATION_PVM_MS,
)
from bsplib.apps.papers.speedup.runs import time_of
from bsplib.apps.papers.speedup.terms import (
    ALONE,
    BUFFERED,
    EIGHT_EACH,
    PRINTED,
    PRINTED_ALONE,
    PRINTED_PVM,
    characterise,
    cost_of,
)
from bsplib.apps.papers.steady.model import ALGORITHMS, amdahl, gustafson, merge_sort_table, on_one
from bsplib.apps.papers.steady.model import SteadySetting as Capacities
from bsplib.apps.papers.where_pays import greatest_l
from bsplib.apps.sql.paper import IMBALANCE_LESS, PAPER, TABLE_1, total_gain
from bsplib.apps.sql.plan import STAGES
from bsplib.apps.sql.story import STORY_SIZE
from bsplib.apps.sql.story_table import printed_by_balance
from bsplib.profiler import format as fmt

JARVIS, GONZALEZ, RODA = "Jarvis et al. 2002", "Gonzalez et al.", "Roda et al. 1999"
CHITTOR, SHI = "Chittor 1995", "Shi"


@dataclass(frozen=True)
class Item:
    """A number or a table, beside print."""

    paper: str
    place: str
    """Table, figure, equation or section."""
    what: str
    printed: str
    ours: str
    differs: str = ""
    """What differs, and why; empty if both are equal to the printed digits."""
    lives: str = ""
    """Module that computes it."""


@dataclass(frozen=True)
class NotComputed:
    """What is not computed by this command."""

    paper: str
    what: str
    why: str


def quick() -> Iterator[Item]:
    """Yield what is computed at once, from constants that the papers print."""
    yield from _jarvis()
    yield from _gonzalez()
    yield from _roda()
    yield from _chittor()
    yield from _shi()


def _jarvis() -> Iterator[Item]:
    ratio = (19.48 + 19.55) / (4.73 + 4.67)
    place = "bsplib.apps.broadcast"
    yield Item(
        JARVIS, "section 5", "one stage / two stages, T3E", "4.15", f"{ratio:.2f}", "", place
    )
    share = f"{round(100 * 2 / 16)}% | {round(100 / 15)}%"
    remark = "2/p and 1/(p - 1), since one of 16 processes receives all"
    yield Item(
        JARVIS,
        "Figure 8",
        "h of the sample on one process",
        "12% | 7%",
        share,
        remark,
        "bsplib.apps.sql",
    )
    yield Item(
        *(JARVIS, "Figure 8", "computation of the sample's sort on one process", "7% | 0%"),
        *(f"{round(100 / 16)}% | 0%", "1/p, since one of 16 processes sorts it", "bsplib.apps.sql"),
    )
    yield Item(
        *(JARVIS, "Figure 3", "computation that two leaves leave to their caller", "4.73 s"),
        *(f"{1.35 + 3.38:.2f} s", "", "bsplib.apps.broadcast"),
    )
    row = TABLE_1["SGI Origin 2000"][8]
    sgi = 100 * (1 - row.optimised / row.original)
    why = "half a percent is rounded up in print"
    yield Item(
        *(JARVIS, "Table 1", "gain at p = 8, SGI Origin 2000", "13%", f"{sgi:.1f}%", why),
        "bsplib.apps.sql.paper",
    )
    for machine, rows in TABLE_1.items():
        printed = {"Cray T3E": "17%", "Cray T3D": "18%", "SGI Origin 2000": "19%"}.get(machine)
        gain = f"{total_gain(rows[1], rows[1])[0]:.0%}"
        why = "" if printed else "print divides by the optimised time"
        old = {"Intel cluster": "51%", "Athlon cluster": "52%"}
        what = f"gain on one processor, {machine}"
        yield Item(
            JARVIS, "Table 1", what, printed or old[machine], gain, why, "bsplib.apps.sql.paper"
        )


def _gonzalez() -> Iterator[Item]:
    found = printed_predictions()
    yield Item(
        GONZALEZ,
        "Table 3",
        f"predictions, P = {', '.join(map(str, TABLE_3))}",
        ", ".join(f"{row.predicted_s:.4f} s" for row in TABLE_3.values()),
        ", ".join(f"{found[nprocs]:.4f} s" for nprocs in TABLE_3),
        "",
        "bsplib.apps.fourier.experiment",
    )
    for nprocs, row in TABLE_3.items():
        error = f"{error_percent(row.measured_s, row.predicted_s):.2f}%"
        why = "" if error == row.error else "the printed times give the other digit"
        yield Item(
            GONZALEZ,
            "Table 3",
            f"error at P = {nprocs}",
            row.error,
            error,
            why,
            "bsplib.apps.papers.msteps.model",
        )


def _roda() -> Iterator[Item]:
    for name, network in PVM.items():
        times = [fft_time(VALUES, p, CONSTANTS[name], network) for p in (2, 4, 8)]
        ours = ", ".join(f"{time:.2f} s" for time in times)
        why = "the figure is lost in the scan; equations and constants are those of the text"
        what = f"model times of the transform at p = 2, 4, 8, {name}"
        yield Item(
            RODA, "Figures 9, 10", what, "curves only", ours, why, "bsplib.apps.papers.msteps.model"
        )


def _chittor() -> Iterator[Item]:
    for table, what, printed, units in (
        ("Table 1", "creation of processes", "table of 10 times", CREATION),
        ("Table 2", "barrier", "table of 10 times", BARRIER),
    ):
        line = fit_parts(units)
        ours = f"{line.each:.2f} P + {line.start:.1f}"
        why = "the line through the printed times; our runs use it"
        yield Item(CHITTOR, table, what, printed, ours, why, "bsplib.apps.papers.speedup.overheads")
    for table, what, times in (
        ("Table 1", "creation of processes on PVM", CREATION_PVM_MS),
        ("Table 2", "barrier on PVM", BARRIER_PVM_MS),
    ):
        line = fit_parts(times)
        ours = f"{line.each:.1f} P + {line.start:.0f} ms"
        printed = f"{', '.join(map(str, times.values()))} ms at P = {', '.join(map(str, times))}"
        why = "the line through the printed times"
        yield Item(CHITTOR, table, what, printed, ours, why, "bsplib.apps.papers.speedup.overheads")
    slow = max(n for n in (2**k for k in range(4, 18)) if PRINTED_PVM.roll_off(n, 16) == 1)
    why = "the greatest power of two for which equation 17 has its least time at P = 1"
    yield Item(
        *(CHITTOR, "chapter 6", "PVM: best speedup at P = 1 until", "about N = 8192"),
        *(f"N = {slow}", why, "bsplib.apps.papers.speedup.terms"),
    )
    cost = f"{cost_of(range(1, 11), range(1, 4), 2):.1%}"
    yield Item(
        CHITTOR,
        "chapter 7",
        "cost of 3 of 10 sizes",
        "4%",
        cost,
        "rounded in print",
        "bsplib.apps.papers.speedup.terms",
    )
    off = f"P = {PRINTED.roll_off(8192)}"
    why = "from equation 14; by her Table 6 the least of the times is at P = 256"
    yield Item(
        CHITTOR,
        "Figure 22",
        "predicted roll-off of 8192 keys",
        "curve only",
        off,
        why,
        "bsplib.apps.papers.speedup.terms",
    )
    given = {(n, n): time for n, time in EIGHT_EACH.items()}
    shown = ", ".join(f"{each:.2f}" for each in characterise(given, ALONE).coefficients)
    why = "printed for N = P; these are of T(N, N/8) for N = 16 to 128 in her Table 6"
    printed = ", ".join(f"{each:.2f}" for each in PRINTED_ALONE.coefficients)
    yield Item(
        CHITTOR,
        "equation 13",
        "coefficients",
        printed,
        shown,
        why,
        "bsplib.apps.papers.speedup.terms",
    )
    most = max(PRINTED_PVM.speedup(2**k, p) for k in range(4, 18) for p in (2, 4, 8, 16))
    why = "its greatest, of 16 to 128 K keys on 2 to 16 processors; the text gives a bound"
    yield Item(
        *(CHITTOR, "equation 17", "greatest speedup on PVM", "at most 4", f"{most:.1f}", why),
        "bsplib.apps.papers.speedup.terms",
    )


def _shi() -> Iterator[Item]:
    sizes = [10_000 * 2**k for k in range(15)]
    rows = merge_sort_table(sizes, 5.2e6, 2.5e6)
    last = " | ".join(f"{value:,.2f}" for value in rows[-1])
    where = "bsplib.apps.papers.steady.model"
    yield Item(
        SHI,
        "Table 1",
        "last row: processor, disk, time",
        "859.77 | 1,048.58 | 1,908.35",
        last,
        "",
        where,
    )
    disk = merge_sort_table(sizes, 5.2e6, 20e6)[-1][2]
    yield Item(SHI, "Table 2", "last cell, 20 MB/s", "990.84", f"{disk:.2f}", "", where)
    processor = merge_sort_table(sizes, 50e6, 2.5e6)[-1][2]
    yield Item(SHI, "Table 3", "last cell, 50 MIPS", "1,137.99", f"{processor:,.2f}", "", where)
    fractal = ALGORITHMS["fractal"].efficiency(Capacities(P=512, W=101e6, u=100e6))
    why = "0.8855 by equation 4.4 and the printed values"
    yield Item(SHI, "Figure 4", "efficiency of the fractal", "87%", f"{fractal:.1%}", why, where)
    laws = f"{amdahl(0.6, 10):.1f}, {gustafson(0.6, 10):.1f}, {on_one(0.6, 10):.2f}"
    yield Item(
        SHI,
        "section 1",
        "Amdahl, Gustafson, fraction",
        "1.6, 4.6, 0.13",
        laws,
        "",
        "bsplib.apps.papers.steady.model",
    )


def virtual(advance: Callable[[], object] = lambda: None) -> Iterator[Item]:
    """Yield what takes runs of Chittor's programs on virtual processors: seconds.

    Args:
        advance: is called after each of the three parts, :data:`VIRTUAL_PARTS`.

    Source: Chittor 1995, chapter 5.
    """
    ours = ", ".join(f"{figure_1(oblivious=way):.0f} w" for way in (True, False))
    why = "if the first exchange is one way; in print it may be both ways, which takes 6 w, too"
    yield Item(
        *(GONZALEZ, "Figure 1", "oblivious, and with global syncs", "5 w, 6 w", ours, why),
        "bsplib.apps.papers.entries",
    )
    times = {p: time_of(1024, p) for p in (1, 2, 4, 8, 16, 32, 64, 128, 512)}
    least = min(times, key=times.__getitem__)
    why = "Multi did not run 512 processors; the costs of a key are ours, and so is the roll-off"
    ours = f"P = {least}; at 512 {times[512] / times[least]:.1f} times as long"
    yield Item(
        *(CHITTOR, "Table 6", "least time of 1024 keys", "P = 64; NA at 512", ours, why),
        "bsplib.apps.papers.speedup.runs",
    )
    advance()
    alone = characterise({(p, p): time_of(p, p) for p in (1, 2, 4, 8, 16, 32)}, ALONE)
    error = error_percent(time_of(256, 256), alone.time(256, 256))
    why = "a curve in print; ours is characterised with P = 1 to 32, as hers"
    yield Item(
        *(CHITTOR, "Figure 20", "error of the prediction, N = P = 256", "curve only"),
        *(f"{error:.1f}%", why, "bsplib.apps.papers.speedup.terms"),
    )
    advance()
    region = buffers.times([2**k for k in range(5, 10)], (1, 2, 4, 8, 16), 16)
    found = characterise(region, BUFFERED)
    error = error_percent(buffers.time_of(1024, 8, 16), found.time(1024, 8))
    why = "a curve in print; ours is characterised with N up to 512"
    yield Item(
        *(CHITTOR, "Figure 24", "error of the prediction, buffers of 16, N = 1024, P = 8"),
        *("curve only", f"{error:.1f}%", why, "bsplib.apps.papers.speedup.buffers"),
    )
    advance()


def figure_1(*, oblivious: bool, one_way: bool = True) -> float:
    """Return how many w two processes take whose loads of w and 2 w change over.

    Args:
        oblivious: whether supersteps end obliviously.
        one_way: whether only the process with the lesser load sends first.

    Source: Gonzalez et al., Figure 1.
    """
    unit = 1e-3
    machine = f"ideal:g={unit},l=0"
    times = bsplib.run(_loads, unit, oblivious, one_way, nprocs=2, backend="sim", machine=machine)
    return max(times) / unit


def _loads(bsp: bsplib.Group, unit: float, oblivious: bool, one_way: bool) -> float:
    """Compute w or 2 w and exchange a byte, which takes w; then the other way round."""
    first = bsp.pid == 0
    bsp.charge(unit if first else 2 * unit)
    if first or not one_way:
        bsp.send(1 - bsp.pid, b"x")
    _end(bsp, oblivious, int(not first or not one_way))
    bsp.charge(2 * unit if first else unit)
    bsp.send(1 - bsp.pid, b"x")
    _end(bsp, oblivious, 1)
    return bsp.time()


def _end(bsp: bsplib.Group, oblivious: bool, expected: int) -> None:
    if oblivious:
        bsp.oblsync(expected)
    else:
        bsp.sync()


VIRTUAL_PARTS = 3


def story() -> Iterator[Item]:
    """Yield the balances and gains of the SQL story, from runs with several seeds.

    Source: Jarvis et al. 2002, section 4.
    """
    rows = seeds.read()
    stages = seeds.by_stage(rows)
    count = len(stages["original"])
    why = f"median and range over {count} seeds; keys and factor are not printed"
    for stage, name, printed in _printed_balances():
        found = [row.balances[name] for row in stages[stage]]
        ours = " | ".join(seeds.spread(each) for each in zip(*found, strict=True))
        shown = f"{printed[0]}% | {printed[1]}%"
        what = f"{STAGES[stage].title}: {_BALANCES[name]}"
        yield Item(JARVIS, "Figures 5 to 9", what, shown, ours, why, _SEEDS)
    yield from _gains(stages)
    yield from _by_sort(rows, count)


_SEEDS = "bsplib.apps.papers.seeds"


def _printed_balances() -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield stage, name and figures of all balances in print."""
    for stage, printed in PAPER.items():
        for name in _BALANCES:
            balance = getattr(printed, name)
            if balance is not None:
                yield stage, name, balance


def _gains(stages: dict[str, list[seeds.StageRow]]) -> Iterator[Item]:
    """Yield what balanced input gains: print has one of each."""
    pairs = list(zip(stages["original"], stages["balanced"], strict=True))
    changes = [100 * (now.imbalance_h / before.imbalance_h - 1) for before, now in pairs]
    why = "in ours balanced rows need fewer moves in the queries, which print does not tell"
    yield Item(
        *(JARVIS, "section 4.1", "imbalance by balanced input", f"-{IMBALANCE_LESS}"),
        *(seeds.spread(changes, "+"), why, _SEEDS),
    )
    gained = [100 * now.gain_by_balance(before) for before, now in pairs]
    whole = seeds.spread([100 * (1 - now.queries_h / before.queries_h) for before, now in pairs])
    why = (
        f"derived and not printed: 26% of the 46% that (54% | 21%) lacks; ours is {whole} with "
        "what is moved less, too"
    )
    yield Item(
        *(JARVIS, "section 4.1", "gain in h of the queries by balance"),
        *(f"{printed_by_balance():.0%}, derived", seeds.spread(gained), why, _SEEDS),
    )


def _by_sort(rows: list[seeds.StageRow], count: int) -> Iterator[Item]:
    """Yield the gains of the sorts on several Machines, and where the bitonic sample pays."""
    machines = seeds.machines()
    for stage, what in (("theoretical", "theory's factor"), ("bitonic", "the bitonic sample")):
        gained = {name: seeds.gains(rows, stage, machine) for name, machine in machines.items()}
        ours = "; ".join(f"{name}: {seeds.spread(each, '+')}" for name, each in gained.items())
        printed = PAPER[stage].sort_gain
        sign = 1 if float(printed.rstrip("%")) > 0 else -1
        middles = {name: sign * round(median(each)) for name, each in gained.items()}
        other = [name for name, each in middles.items() if each < 0]
        none = [name for name, each in middles.items() if not each]
        turns = f"turned round on {', '.join(other)}" if other else "its sign is that of print"
        turns += f", none on {', '.join(none)}" if none else ""
        why = f"time in print, w + g h + l in ours, {count} seeds; {turns}"
        yield Item(
            *(JARVIS, "section 4.3", f"gain of the sort by {what}", printed, ours, why, _SEEDS)
        )
    for name, machine in machines.items():
        limits = [greatest_l(machine, p, STORY_SIZE) for p in _MAP]
        ours = ", ".join(fmt.seconds(limit) for limit in limits)
        own = fmt.seconds(machine.need("l"))
        why = f"a map in g, l and p, which print does not have; its own l is {own}"
        what = f"bitonic sample pays up to l =, p = {', '.join(map(str, _MAP))}, {name}"
        place = "bsplib.apps.papers.where_pays"
        yield Item(JARVIS, "section 4.3", what, "not printed", ours, why, place)


_MAP = (4, 8, 16, 32, 64)


_BALANCES = {
    "sql_h": "h of the queries",
    "sql_comp": "computation of the queries",
    "sample_h": "h of the sample",
    "exchange_h": "h of stage 6",
    "merge_comp": "computation of stage 7",
}

MISSING = (
    NotComputed(
        JARVIS, "seconds of Table 1", "the program is not printed; bsplib.apps.sql table1 has gains"
    ),
    NotComputed(
        JARVIS,
        "communication (92% | 89%) of Figure 9",
        "a superstep ends for all virtual processors at once, so theirs is even",
    ),
    NotComputed(
        JARVIS,
        "h (71% | 56%) of elim_dup0, section 4.2",
        "its query is not printed; no query here eliminates duplicates by a sort of their own",
    ),
    NotComputed(
        JARVIS,
        "(60% | 48%) and (49% | 15%) of Figure 7",
        "of a sort whose keys and factor are not printed; stages 6 and 7 of ours are in the table",
    ),
    NotComputed(JARVIS, "Figures 3 and 4", "screens; make demo draws the call graph of Figure 3"),
    NotComputed(GONZALEZ, "times of Table 3", "of their T3E; --full predicts and measures ours"),
    NotComputed(
        GONZALEZ, "Table 2", "has no numbers; bsp fit divides A2 alone (docs/experiments.md)"
    ),
    NotComputed(
        RODA, "Figures 2 to 6", "curves without numbers; bsp probe measures the patterns here"
    ),
    NotComputed(
        RODA,
        "Figure 12",
        "its constants are not printed; bsplib.apps.msteps measure has ours",
    ),
    NotComputed(
        CHITTOR,
        "Tables 5, 6",
        "times of Multi; bsplib.apps.speedup predict has a program with ours",
    ),
    NotComputed(
        CHITTOR,
        "times behind equations 15 to 18",
        "not printed; bsplib.apps.papers.speedup.buffers has ours",
    ),
    NotComputed(
        SHI,
        "Tables 4 to 6",
        "lost in the scan; bsplib.apps.steady measure has programs here",
    ),
    NotComputed(SHI, "Figures 2 to 6", "maps without numbers; bsplib.apps.steady map draws any"),
)
