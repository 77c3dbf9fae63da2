"""What differs between two runs beside the code: processes, input, Machine, host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.hosts import host_names

if TYPE_CHECKING:
    from bsplib.recording.records import Run


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
