"""What changed between two runs, in one sentence, and what differs beside the code."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.format import host_names, processes_named
from bsplib.profiler.kinds import LEAST_TOLD, ROTATING

if TYPE_CHECKING:
    from bsplib.profiler.compare.comparison import Compared, Comparison
    from bsplib.recording.records import Run


Change = tuple[float, str, str]
"""Seconds that one function takes more or less of one kind; its name; and what follows that, such
as ``computes 2.00 ms less``."""


def verdict(comparison: Comparison) -> str:
    """Return what changed, such as ``1.12 s instead of 2.23 s: relax loses 1.10 s less``.

    The time of the whole run comes first, then the functions that account for the greatest
    changes, then h and the number of supersteps.

    Args:
        comparison: two runs.
    """
    parts = [_together(causes_of(comparison)), _h(comparison), _supersteps(comparison)]
    return f"{_time(comparison)}: {'; '.join(filter(None, parts))}"


def _together(changes: list[Change]) -> str:
    """Return the texts of changes; the name of a function is not repeated."""
    text = last = ""
    for _, function, change in changes:
        again = function == last
        text += f" and {change}" if again else f"{text and '; '}{function} {change}"
        last = function
    return text


def causes_of(comparison: Comparison, most: int = 2) -> list[Change]:
    """Return the greatest changes of a function's computation, communication or loss.

    Args:
        comparison: two runs.
        most: how many to return at most.

    Returns:
        The greatest first; none that is less than 1% of the longer run.
    """
    functions: defaultdict[str, list[Compared]] = defaultdict(list)
    for node in comparison.cost_centres:
        functions[node.known.function.id].append(node)
    changes = [change for nodes in functions.values() for change in _changes(comparison, nodes)]
    longer = max(value or 0 for value in comparison.whole.values("time"))
    worth = [change for change in changes if abs(change[0]) > LEAST_TOLD * longer]
    return sorted(worth, key=lambda change: -abs(change[0]))[:most]


def _time(comparison: Comparison) -> str:
    before, after = (fmt.seconds(value or 0) for value in comparison.whole.values("elapsed"))
    return f"{after} as before" if before == after else f"{after} instead of {before}"


_PARTS = {
    "useful": "computes {} {}",
    "imbalance": "loses {} {} waiting for {whom}",
    "transfers": "exchanges data for {} {}",
    "transfer_imbalance": "loses {} {} waiting for the transfers of {whom}",
    "latency": "takes {} {} to end supersteps",
    "blocked": "is blocked for {} {}",
    "core": "waits for a core for {} {}",
    "unexplained": "has {} {} that nothing explains",
}
"""Texts for seconds and ``less`` or ``more``, by the part of the account that they mean."""


def _changes(comparison: Comparison, nodes: list[Compared]) -> list[Change]:
    """Return the changes of one function, given its cost centres."""
    name = fmt.visible(nodes[0].known.function.name)
    if all(node.before is None for node in nodes) or all(node.after is None for node in nodes):
        seconds = sum(node.change("time") for node in nodes)
        text = "is new and takes" if seconds >= 0 else "is gone, which took"
        return [(seconds, name, f"{text} {fmt.seconds(abs(seconds))}")]
    changes = list[Change]()
    for part, text in _PARTS.items():
        seconds = sum(node.change(part) for node in nodes)
        amount = fmt.seconds(abs(seconds)), "less" if seconds < 0 else "more"
        whom = _whom(comparison, nodes, seconds, part)
        changes.append((seconds, name, text.format(*amount, whom=whom)))
    return changes


def _whom(comparison: Comparison, nodes: list[Compared], seconds: float, part: str) -> str:
    """Say for whom the others wait in the run, before or after, in which more is lost."""
    book = comparison.before if seconds < 0 else comparison.after
    sides = [node.before if seconds < 0 else node.after for node in nodes]
    ids = {side.node.id for side in sides if side is not None}
    lost = (it for it in book.losses if it.is_lost and it.part == part)
    found = (it for it in lost if ids.intersection(it.chain[-1:]))
    greatest = next(found, None)
    if greatest is None or not greatest.pids:
        return "others"
    if greatest.habit == ROTATING:
        return "another process each time"
    return processes_named(book.callgraph.run, greatest.pids[:1])


def _h(comparison: Comparison) -> str:
    change = comparison.whole.change("h")
    if not change:
        return "h unchanged"
    before = comparison.whole.values("h")[0]
    share = f" ({_percent(100 * change / before)})" if before else ""
    amount = f"{fmt.size(abs(change))} {'less' if change < 0 else 'more'} h{share}"
    return f"{amount}{_where(comparison, 'h')}"


def _percent(value: float) -> str:
    return f"{value:+.0f}%" if abs(value) >= 10 else f"{value:+.2g}%"


def _supersteps(comparison: Comparison) -> str:
    change = round(comparison.whole.change("supersteps"))
    if not change:
        return "supersteps unchanged"
    noun = "superstep" if abs(change) == 1 else "supersteps"
    amount = f"{abs(change)} {noun} {'fewer' if change < 0 else 'more'}"
    return f"{amount}{_where(comparison, 'supersteps')}"


def _where(comparison: Comparison, quantity: str) -> str:
    """Name the function in which most of a change is; empty if there is none."""
    changes: defaultdict[str, float] = defaultdict(float)
    for node in comparison.cost_centres:
        changes[fmt.visible(node.known.function.name)] += node.change(quantity)
    name = max(changes, key=lambda it: abs(changes[it]), default="")
    total = sum(map(abs, changes.values()))
    if abs(changes[name]) <= total / 2:
        return ""
    return f" in {name}" if abs(changes[name]) == total else f", mainly in {name}"


def differences(before: Run, after: Run) -> list[str]:
    """Return what makes two runs hard to compare, each as ``4 processes instead of 8``.

    Args:
        before: the first run.
        after: the second run.

    Returns:
        Texts for the number of processes, the program, its arguments, backend, Machine, host
        and number of cores, and for runs that ended in an error; empty where all are equal.
    """
    old, new = _conditions(before), _conditions(after)
    changed = [f"{new[name]} instead of {old[name]}" for name in old if old[name] != new[name]]
    changed += _arguments(_options(before), _options(after))
    machines = before.meta.get("machine"), after.meta.get("machine")
    if old["machine"] == new["machine"] and machines[0] != machines[1]:
        changed.append(f"other figures of {old['machine']}")
    broken = [
        f"the run {when} "
        + ("has no records of some processes" if run.absent else "ended in an error")
        for when, run in (("before", before), ("after", after))
        if not run.complete
    ]
    return changed + broken


def _conditions(run: Run) -> dict[str, str]:
    """Return the conditions of a run in words."""
    meta = run.meta
    machine = meta.get("machine")
    name = machine.get("name") if isinstance(machine, dict) else None
    cores = meta.get("cores", "unknown")
    return {
        "processes": fmt.processes(run.nprocs),
        "program": f"program {_short(meta.get('program', 'unknown'))}",
        "backend": f"backend {_short(meta.get('backend', 'unknown'))}",
        "machine": f"Machine {_short(name)}" if name else "no Machine",
        "host": f"host {_short(host_names(run))}",
        "cores": f"{_short(cores)} core{'s' * (cores != 1)}",
    }


def _arguments(before: list[str], after: list[str]) -> list[str]:
    """Return what the program was given in only one of the runs."""
    gone = [option for option in before if option not in after]
    added = [option for option in after if option not in before]
    if gone == added:  # only their order differs
        return []
    old, new = (_short(" ".join(options)) or "none" for options in (gone, added))
    return [f"arguments {new} instead of {old}"]


def _options(run: Run) -> list[str]:
    """Return the arguments of a program, each option with its values; not the trace file."""
    arguments = run.meta.get("arguments")
    options: list[str] = []
    for word in map(str, arguments if isinstance(arguments, list) else []):
        if word.startswith("-") or not options:
            options.append(word)
        else:
            options[-1] += f" {word}"
    return [option for option in options if not option.startswith("--profile")]


def _short(value: object) -> str:
    return fmt.shortened(fmt.visible(str(value)), fmt.MOST_COLUMNS)
