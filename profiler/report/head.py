"""What a report says of a whole run, before and after its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from bsplib.profiler import format as fmt
from bsplib.profiler.efficiency import scaling_among
from bsplib.profiler.hosts import where
from bsplib.profiler.other_time import own_threads_sentence, steal_sentence
from bsplib.profiler.report.lines import KEPT_WIDTH, print_wrapped
from bsplib.profiler.verdict import MOST_SENTENCES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.console import Console
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.repeats import Repeats


def print_title(profile: RunProfile, console: Console) -> None:
    """Print what the run is, on one line or two."""
    room = console.width - 2
    head = f"run {profile.number}: "
    head += fmt.program(profile.run, most=max(room - len(head), KEPT_WIDTH))
    how = fmt.circumstances(profile.run)
    fits = cell_len(f"{head}, {how}") <= room
    print_wrapped(console, f"{head}, {how}" if fits else head, style="bold")
    if not fits:
        print_wrapped(console, f"  {how}", style="bold")
    if on := where(profile.run):
        print_wrapped(console, f"  {on}")


def print_verdict(repeats: Repeats, console: Console) -> None:
    """Print the verdict on a run, with intervals where it was repeated, and its efficiencies."""
    verdict, book = repeats.median.verdict(), repeats.median.book()
    repeated = len(repeats.runs) > 1
    if repeated:
        print_wrapped(console, f"the run of median time; {repeats.elapsed()}")
    if verdict.short:
        print_wrapped(console, verdict.short.text)
    for interval in repeats.intervals():
        doubt = f" [{interval}]" if repeated else ""
        print_wrapped(console, f"{interval.sentence.text}{doubt}")
    if verdict.rest:
        print_wrapped(console, verdict.rest.text)
        for about in (own_threads_sentence, steal_sentence):
            if text := about(repeats.median.run):
                print_wrapped(console, text)
        found = book.efficiencies
        is_measured = repeats.median.run.meta.get("backend") != "sim"
        print_wrapped(
            console,
            f"parallel efficiency {found.parallel:.0%} = load balance {found.load_balance:.0%} x "
            f"serialisation {found.serialisation:.0%} x transfer {found.transfer:.0%}"
            f"{'; from one run' if is_measured and not repeated else ''}",
        )


def print_losses(profile: RunProfile, node: str, console: Console) -> None:
    """Print the greatest losses at a node and below it."""
    here = [loss for loss in profile.book().losses if node in (*loss.chain, *loss.callers)]
    for loss in here[:MOST_SENTENCES]:
        print_wrapped(console, loss.text)


def print_scaling(run: RunProfile, runs: Iterable[RunProfile], console: Console) -> None:
    """Print the computation scaling of a run, if one of the others has fewer processes."""
    if scaling := scaling_among(run, runs):
        print_wrapped(console, str(scaling))


def print_rates(profile: RunProfile, console: Console) -> None:
    """Print how numbers are to be read, and the g and l of transfers and latency."""
    reading = "max (avg% | min%) over all processes, summed over supersteps"
    print_wrapped(console, reading)
    print_wrapped(console, profile.rates.sentence())
