"""How long a process imports modules inside ``main``.

A process imports a module at its first use, and some modules of a library import themselves late.
The first random number of numpy takes some 8 ms for that reason: most of the computation of a small
run, and nothing that grows with the data. Python calls one function of its import system for each
module that is not loaded, by its name: the clock takes the place of this function.
"""

from __future__ import annotations

import sys
import threading
import time
from importlib import _bootstrap
from typing import Any

from bsplib.recording.records import MAX_NUMBER

_python: Any = _bootstrap
"""The import system of Python."""


def is_import(told: Any) -> bool:
    """Tell whether a value from a file says what the clock has found of an import."""
    match told:
        case [at_ns, cpu_ns]:
            return all(type(each) is int and 0 <= each <= MAX_NUMBER for each in (at_ns, cpu_ns))
    return False


class ImportClock:
    """Notes the imports of the thread that makes it, until it is closed.

    Args:
        began_ns: time 0 of the records.
    """

    def __init__(self, began_ns: int) -> None:
        self.found: list[tuple[int, int]] = []
        """Of each import, in the order in which they ended: when it began, on the clock of the
        records, and the CPU time of the thread until the module, and what that imported itself,
        was loaded; in ns."""
        self._began_ns = began_ns
        self._thread = threading.get_ident()
        self._is_inside = False
        self._load = _python._find_and_load
        _python._find_and_load = self._note

    def close(self) -> None:
        """End the measurement."""
        if _python._find_and_load == self._note:
            _python._find_and_load = self._load

    def _note(self, name: str, import_: Any) -> Any:
        """Load a module; note what that took, unless another import or another thread needs it."""
        if self._is_inside or name in sys.modules or threading.get_ident() != self._thread:
            return self._load(name, import_)
        at_ns, began_ns = time.perf_counter_ns() - self._began_ns, time.thread_time_ns()
        self._is_inside = True
        try:
            return self._load(name, import_)
        finally:
            self._is_inside = False
            self.found.append((at_ns, time.thread_time_ns() - began_ns))


# Python leaves calls inside its import system out of tracebacks, and a warning with a stacklevel
# names the line that imports a module: this function looks like one of them.
ImportClock._note.__code__ = ImportClock._note.__code__.replace(
    co_filename="<frozen importlib._bootstrap>"
)
