"""The values that a run was made with: numbers of its arguments, and what a user adds.

A trace has the numbers among the arguments of ``main`` (``parameters``; of an array the number
of its elements), and the command line of the program, as in ``--size 4096``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bsplib.recording.records import Run

SEEDS = frozenset({"seed", "sim_seed"})
"""Values that choose the data and not their size: runs that differ in them are repeats."""
PROCESSES = "p"
"""The variable that is the number of processes."""
_OF_THE_RUN = frozenset({"n", "nprocs", "profile", "backend", "machine", "run", "timeout"})
"""Options of all programs, on which nothing depends but where and how they run."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_MOST = 1e15


def carried(run: Run) -> dict[str, float]:
    """Return the numbers by name that a trace has of the arguments of a run.

    The parameters of ``main`` come first, and win over options of the command line with the same
    name: of a value with two names theirs is the one that a user knows.
    """
    of_main = _of_main(run.meta.get("parameters"))
    return {**of_main, **_of_line(run.meta.get("arguments")), **of_main}


def _of_main(parameters: Any) -> dict[str, float]:
    if not isinstance(parameters, Mapping):
        return {}
    return {
        str(name): float(value)
        for name, value in parameters.items()
        if isinstance(value, int | float) and _is_usable(str(name), float(value))
    }


def _of_line(arguments: Any) -> dict[str, float]:
    """Return the options with a number, and the numbers without an option by their place."""
    if not isinstance(arguments, Sequence) or isinstance(arguments, str):
        return {}
    words = [word for argument in arguments for word in str(argument).split("=", 1)]
    found: dict[str, float] = {}
    places = 0
    for word, before in zip(words, ["", *words], strict=False):
        if not _NUMBER.fullmatch(word):
            continue
        if before.startswith("-") and not _NUMBER.fullmatch(before):
            name = before.lstrip("-").replace("-", "_")
            if name in _OF_THE_RUN:
                continue
        else:
            places += 1
            name = f"arg{places}"
        if _is_usable(name, float(word)):
            found[name] = float(word)
    return found


def _is_usable(name: str, value: float) -> bool:
    return name.isidentifier() and math.isfinite(value) and abs(value) <= _MOST
