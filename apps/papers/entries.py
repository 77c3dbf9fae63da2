"""The entries: what a paper prints, what is computed here, and why the two differ."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from statistics import median

import bsplib
from bsplib.apps.fourier.experiment import printed_predictions
from bsplib.apps.fourier.published import TABLE_3
from bsplib.apps.papers import bitonic, seeds, speedup, steady
from bsplib.apps.papers.msteps import CONSTANTS, PVM, VALUES, error_percent, fft_time
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


Items = Iterator[Item]


def quick() -> Items:
    """Yield what is computed at once, from constants that the papers print."""
    yield from _jarvis()
    yield from _gonzalez()
    yield from _roda()
    yield from _chittor()
    yield from _shi()


def _jarvis() -> Items:
    item, sql = partial(Item, JARVIS), "bsplib.apps.sql"
    ratio, own = (19.48 + 19.55) / (4.73 + 4.67), f"{1.35 + 3.38:.2f} s"
    place = "bsplib.apps.broadcast"
    yield item("section 5", "one stage / two stages, T3E", "4.15", f"{ratio:.2f}", "", place)
    share = f"{round(100 * 2 / 16)}% | {round(100 / 15)}%"
    why = "2/p and 1/(p - 1), since one of 16 processes receives all"
    yield item("Figure 8", "h of the sample on one process", "12% | 7%", share, why, sql)
    what, share = "computation of the sample's sort on one process", f"{round(100 / 16)}% | 0%"
    yield item("Figure 8", what, "7% | 0%", share, "1/p, since one of 16 processes sorts it", sql)
    what = "computation that two leaves leave to their caller"
    yield item("Figure 3", what, "4.73 s", own, "", place)
    place, row = "bsplib.apps.sql.paper", TABLE_1["SGI Origin 2000"][8]
    what, gain = (
        "gain at p = 8, SGI Origin 2000",
        f"{100 * (1 - row.optimised / row.original):.1f}%",
    )
    yield item("Table 1", what, "13%", gain, "half a percent is rounded up in print", place)
    why = "print divides by the optimised time"
    for machines, printed, differs in (
        (("Cray T3E", "Cray T3D", "SGI Origin 2000"), "17%, 18%, 19%", ""),
        (("Intel cluster", "Athlon cluster"), "51%, 52%", why),
    ):
        alone = (TABLE_1[machine][1] for machine in machines)
        gain = ", ".join(f"{total_gain(row, row)[0]:.0%}" for row in alone)
        what = f"gain on one processor, {', '.join(machines)}"
        yield item("Table 1", what, printed, gain, differs, place)


def _gonzalez() -> Items:
    item, found = partial(Item, GONZALEZ, "Table 3"), printed_predictions()
    what, place = (
        f"predictions, P = {', '.join(map(str, TABLE_3))}",
        "bsplib.apps.fourier.experiment",
    )
    printed = ", ".join(f"{row.predicted_s:.4f} s" for row in TABLE_3.values())
    yield item(what, printed, ", ".join(f"{found[p]:.4f} s" for p in TABLE_3), "", place)
    rows, why = TABLE_3.values(), "the printed times give the other digit"
    errors = (f"{error_percent(row.measured_s, row.predicted_s):.2f}%" for row in rows)
    printed = ", ".join(row.error for row in rows)
    yield item("their errors", printed, ", ".join(errors), why, "bsplib.apps.papers.msteps")


def _roda() -> Items:
    why = "the figure is lost in the scan; equations and constants are those of the text"
    for name, network in PVM.items():
        times = [fft_time(VALUES, p, CONSTANTS[name], network) for p in (2, 4, 8)]
        ours = ", ".join(f"{time:.2f} s" for time in times)
        what, place = (
            f"model times of the transform at p = 2, 4, 8, {name}",
            "bsplib.apps.papers.msteps",
        )
        yield Item(RODA, "Figures 9, 10", what, "curves only", ours, why, place)


def _chittor() -> Items:
    item, place = partial(Item, CHITTOR), "bsplib.apps.papers.speedup"
    why = "the line through the printed times; our runs use it"
    units = speedup.CREATION, speedup.BARRIER
    names = ("Table 1", "creation of processes"), ("Table 2", "barrier")
    for (table, what), times in zip(names, units, strict=True):
        line = speedup.fit_parts(times)
        ours = f"{line.each:.2f} P + {line.start:.1f}"
        yield item(table, what, "table of 10 times", ours, why, place)
    why, units = why.partition(";")[0], (speedup.CREATION_PVM_MS, speedup.BARRIER_PVM_MS)
    for (table, what), times in zip(names, units, strict=True):
        line = speedup.fit_parts(times)
        printed = f"{', '.join(map(str, times.values()))} ms at P = {', '.join(map(str, times))}"
        ours = f"{line.each:.1f} P + {line.start:.0f} ms"
        yield item(table, f"{what} on PVM", printed, ours, why, place)
    pvm = speedup.PRINTED_PVM
    slow = max(n for n in (2**k for k in range(4, 18)) if pvm.roll_off(n, 16) == 1)
    what = "PVM: best speedup at P = 1 until"
    why = "the greatest power of two for which equation 17 has its least time at P = 1"
    yield item("chapter 6", what, "about N = 8192", f"N = {slow}", why, place)
    cost = f"{speedup.cost_of(range(1, 11), range(1, 4), 2):.1%}"
    yield item("chapter 7", "cost of 3 of 10 sizes", "4%", cost, "rounded in print", place)
    what, off = "predicted roll-off of 8192 keys", f"P = {speedup.PRINTED.roll_off(8192)}"
    why = "from equation 14; by her Table 6 the least of the times is at P = 256"
    yield item("Figure 22", what, "curve only", off, why, place)
    given = {(n, n): time for n, time in speedup.EIGHT_EACH.items()}
    found = speedup.characterise(given, speedup.ALONE), speedup.PRINTED_ALONE
    ours, printed = (", ".join(f"{each:.2f}" for each in one.coefficients) for one in found)
    why = "printed for N = P; these are of T(N, N/8) for N = 16 to 128 in her Table 6"
    yield item("equation 13", "coefficients", printed, ours, why, place)
    most = max(pvm.speedup(2**k, p) for k in range(4, 18) for p in (2, 4, 8, 16))
    why = "its greatest, of 16 to 128 K keys on 2 to 16 processors; the text gives a bound"
    yield item("equation 17", "greatest speedup on PVM", "at most 4", f"{most:.1f}", why, place)


def _shi() -> Items:
    item, place = partial(Item, SHI), "bsplib.apps.papers.steady"
    sizes = [10_000 * 2**k for k in range(15)]
    table = partial(steady.merge_sort_table, sizes)
    last = " | ".join(f"{value:,.2f}" for value in table(5.2e6, 2.5e6)[-1])
    what, printed = "last row: processor, disk, time", "859.77 | 1,048.58 | 1,908.35"
    yield item("Table 1", what, printed, last, "", place)
    disk, processor = table(5.2e6, 20e6)[-1][2], table(50e6, 2.5e6)[-1][2]
    yield item("Table 2", "last cell, 20 MB/s", "990.84", f"{disk:.2f}", "", place)
    yield item("Table 3", "last cell, 50 MIPS", "1,137.99", f"{processor:,.2f}", "", place)
    there = steady.SteadySetting(P=512, W=101e6, u=100e6)
    fractal = f"{steady.ALGORITHMS['fractal'].efficiency(there):.1%}"
    why = "0.8855 by equation 4.4 and the printed values"
    yield item("Figure 4", "efficiency of the fractal", "87%", fractal, why, place)
    laws = f"{steady.amdahl(0.6, 10):.1f}, {steady.gustafson(0.6, 10):.1f}"
    laws, what = f"{laws}, {steady.on_one(0.6, 10):.2f}", "Amdahl, Gustafson, fraction"
    yield item("section 1", what, "1.6, 4.6, 0.13", laws, "", place)


VIRTUAL_PARTS = 3


def virtual(advance: Callable[[], object] = lambda: None) -> Items:
    """Yield what takes runs of Chittor's programs on virtual processors: seconds.

    Args:
        advance: is called after each of the three parts, :data:`VIRTUAL_PARTS`.

    Source: Chittor 1995, chapter 5.
    """
    ours = ", ".join(f"{figure_1(oblivious=way):.0f} w" for way in (True, False))
    what, place = "oblivious, and with global syncs", "bsplib.apps.papers.entries"
    why = "if the first exchange is one way; in print it may be both ways, which takes 6 w, too"
    yield Item(GONZALEZ, "Figure 1", what, "5 w, 6 w", ours, why, place)
    item, place = partial(Item, CHITTOR), "bsplib.apps.papers.bitonic"
    time_of = bitonic.time_of
    times = {p: time_of(1024, p) for p in (1, 2, 4, 8, 16, 32, 64, 128, 512)}
    least = min(times, key=times.__getitem__)
    why = "Multi did not run 512 processors; the costs of a key are ours, and so is the roll-off"
    ours = f"P = {least}; at 512 {times[512] / times[least]:.1f} times as long"
    yield item("Table 6", "least time of 1024 keys", "P = 64; NA at 512", ours, why, place)
    advance()
    known = {(p, p): time_of(p, p) for p in (1, 2, 4, 8, 16, 32)}
    alone = speedup.characterise(known, speedup.ALONE)
    error = f"{error_percent(time_of(256, 256), alone.time(256, 256)):.1f}%"
    what = "error of the prediction, N = P = 256"
    why = "a curve in print; ours is characterised with P = 1 to 32, as hers"
    yield item("Figure 20", what, "curve only", error, why, "bsplib.apps.papers.speedup")
    advance()
    region = bitonic.buffered_times([2**k for k in range(5, 10)], (1, 2, 4, 8, 16), 16)
    found = speedup.characterise(region, speedup.BUFFERED)
    error = f"{error_percent(bitonic.buffered_time(1024, 8, 16), found.time(1024, 8)):.1f}%"
    what = "error of the prediction, buffers of 16, N = 1024, P = 8"
    why = "a curve in print; ours is characterised with N up to 512"
    yield item("Figure 24", what, "curve only", error, why, place)
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
    for load, sends, expected in (
        (unit if first else 2 * unit, first or not one_way, not first or not one_way),
        (2 * unit if first else unit, True, True),
    ):
        bsp.charge(load)
        if sends:
            bsp.send(1 - bsp.pid, b"x")
        if oblivious:
            bsp.oblsync(int(expected))
        else:
            bsp.sync()
    return bsp.time()


_BALANCES = {
    "sql_h": "h of the queries",
    "sql_comp": "computation of the queries",
    "sample_h": "h of the sample",
    "exchange_h": "h of stage 6",
    "merge_comp": "computation of stage 7",
}


def story() -> Items:
    """Yield the balances and gains of the SQL story, from runs with several seeds.

    Source: Jarvis et al. 2002, section 4.
    """
    rows = seeds.read()
    stages, item = seeds.by_stage(rows), partial(Item, JARVIS)
    place, count = "bsplib.apps.papers.seeds", len(stages["original"])
    why = f"median and range over {count} seeds; keys and factor are not printed"
    for stage, figures in PAPER.items():
        for name, title in _BALANCES.items():
            if (balance := getattr(figures, name)) is not None:
                found = zip(*(row.balances[name] for row in stages[stage]), strict=True)
                ours, shown = " | ".join(map(seeds.spread, found)), f"{balance[0]}% | {balance[1]}%"
                what = f"{STAGES[stage].title}: {title}"
                yield item("Figures 5 to 9", what, shown, ours, why, place)
    pairs = list(zip(stages["original"], stages["balanced"], strict=True))
    change = seeds.spread(
        [100 * (now.imbalance_h / before.imbalance_h - 1) for before, now in pairs], "+"
    )
    what, printed = "imbalance by balanced input", f"-{IMBALANCE_LESS}"
    why = "in ours balanced rows need fewer moves in the queries, which print does not tell"
    yield item("section 4.1", what, printed, change, why, place)
    gained = seeds.spread([100 * now.gain_by_balance(before) for before, now in pairs])
    whole = seeds.spread([100 * (1 - now.queries_h / before.queries_h) for before, now in pairs])
    what, printed = "gain in h of the queries by balance", f"{printed_by_balance():.0%}, derived"
    why = (
        f"derived and not printed: 26% of the 46% that (54% | 21%) lacks; ours is {whole} with "
        "what is moved less, too"
    )
    yield item("section 4.1", what, printed, gained, why, place)
    yield from _by_sort(rows, count)


def _by_sort(rows: list[seeds.StageRow], count: int) -> Items:
    """Yield the gains of the sorts on several Machines, and where the bitonic sample pays."""
    machines, item = seeds.machines(), partial(Item, JARVIS, "section 4.3")
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
        yield item(f"gain of the sort by {what}", printed, ours, why, "bsplib.apps.papers.seeds")
    counts = (4, 8, 16, 32, 64)
    for name, machine in machines.items():
        limits = [seeds.greatest_l(machine, p, STORY_SIZE) for p in counts]
        ours, own = ", ".join(map(fmt.seconds, limits)), fmt.seconds(machine.need("l"))
        why = f"a map in g, l and p, which print does not have; its own l is {own}"
        what = f"bitonic sample pays up to l =, p = {', '.join(map(str, counts))}, {name}"
        yield item(what, "not printed", ours, why, "bsplib.apps.papers.seeds")


# -- what is kept in files: what is not computed, and what was measured once --------------------


def table(name: str) -> list[list[str]]:
    """Return the rows of a table that comes along, without its titles.

    Args:
        name: ``missing`` (paper, what is not computed, why) or ``measured`` (paper, place, what,
            ours, what differs).
    """
    text = files("bsplib.apps.papers").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines(), strict=True))[1:]
