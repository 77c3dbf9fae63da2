"""Whether a process may keep a core busy while it waits: what the computer grants it.

Where a control group has a quota of CPU time, time that a process spends looking is missing for
its work. On battery it costs energy that the user has to pay for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_SUPPLIES = Path("/sys/class/power_supply")
_OF_THIS_PROCESS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def may_keep_core_busy() -> bool:
    """Tell whether this process runs on mains, and its CPU time has no quota below its cores."""
    return not on_battery() and quota() >= len(os.sched_getaffinity(0))


def on_battery(supplies: Path = _SUPPLIES) -> bool:
    """Tell whether this computer runs on a battery now.

    Args:
        supplies: the folder in which the system lists its supplies of power.
    """
    try:
        found = sorted(supplies.iterdir())
    except OSError:
        return False
    # A battery of a mouse or a headset has the scope "Device".
    ours = [each for each in found if _text(each / "scope") != "Device"]
    return any(
        _text(each / "type") == "Battery" and _text(each / "status") == "Discharging"
        for each in ours
    )


def quota(of_this_process: Path = _OF_THIS_PROCESS, groups: Path = _GROUPS) -> float:
    """Return how many cores the control groups of this process let it use, all the time.

    Args:
        of_this_process: the file that names the control groups of this process.
        groups: the folder in which the system lists control groups.

    Returns:
        Infinity where there is no quota, or none that can be read.
    """
    return min(
        (
            share
            for line in _text(of_this_process).splitlines()
            for folder in _folders(line, groups)
            for share in (_share(folder), _share_v1(folder))
        ),
        default=float("inf"),
    )


def _folders(line: str, groups: Path) -> Iterator[Path]:
    """Yield the folders of a control group, from its line in the file, and of all above it."""
    _number, controllers, path = line.split(":", 2)
    if controllers and "cpu" not in controllers.split(","):
        return
    # Version 1 has one tree for each list of controllers, version 2 one tree for all of them.
    for tree in (groups / controllers, groups / "cpu") if controllers else (groups,):
        names = Path(path.strip("/")).parts
        yield from (tree.joinpath(*names[:depth]) for depth in range(len(names) + 1))


def _share(folder: Path) -> float:
    """Return the quota of a control group of version 2, in cores."""
    allowed, _, period = _text(folder / "cpu.max").partition(" ")
    return int(allowed) / int(period) if period and allowed != "max" else float("inf")


def _share_v1(folder: Path) -> float:
    """Return the quota of a control group of version 1, in cores."""
    allowed, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    return int(allowed) / int(period) if period and int(allowed or -1) > 0 else float("inf")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
