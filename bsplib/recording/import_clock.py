"""How long a process imports modules inside ``main``.

A process imports a module at its first use, and some modules of a library import themselves late.
The first random number of numpy takes some 8 ms for that reason: most of the computation of a small
run, and nothing that grows with the data. The clock is the first of the finders in
``sys.meta_path``, which Python asks only for modules that are not loaded, so that importing a
loaded module costs nothing more.

A module is found, made and executed by three calls. They are measured one by one: where a program
loads lazily, a module is executed at its first use, long after it was found.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import (
    ExtensionFileLoader,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import ModuleType
from typing import Any

from bsplib.recording.records import MAX_NUMBER

_LOADERS = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
"""Loaders of Python, each of which loads one module. Others may load several at once, as those of
test runners do: what they load is not noted."""
_CREATE, _EXECUTE = "create_module", "exec_module"


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
        """Of each import, in the order in which they ended: when the module began to be executed,
        on the clock of the records, and the CPU time of the thread in which it, and what it
        imported itself, was found, made and executed; in ns."""
        self._began_ns = began_ns
        self._thread = threading.get_ident()
        self._is_inside = False
        sys.meta_path.insert(0, self)

    def close(self) -> None:
        """End the measurement."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return what the other finders find, where the time of its import is to be noted."""
        if self._is_part():
            return None
        began_ns = time.thread_time_ns()
        self._is_inside = True  # a finder may import, too
        try:
            spec = _found_by_others(self, name, path, target)
        finally:
            self._is_inside = False
        loader: Any = None if spec is None else spec.loader
        if type(loader) in _LOADERS and _EXECUTE not in vars(loader):
            used = [time.thread_time_ns() - began_ns]
            for call in (_CREATE, _EXECUTE):
                method = getattr(loader, call)
                setattr(loader, call, functools.partial(self._load, used, loader, call, method))
        return spec

    def _is_part(self) -> bool:
        """Tell whether what is imported now is part of another import, or of another thread."""
        return self._is_inside or threading.get_ident() != self._thread

    def _load(
        self,
        used: list[int],
        loader: Any,
        call: str,
        method: Callable[[Any], Any],
        given: Any,
    ) -> Any:
        """Make or execute a module, and note what that used; the loader is as it was then."""
        vars(loader).pop(call, None)
        if call == _EXECUTE:  # a module that is loaded again is not made
            vars(loader).pop(_CREATE, None)
        if self._is_part():
            return method(given)
        at_ns, began_ns = time.perf_counter_ns() - self._began_ns, time.thread_time_ns()
        self._is_inside = True
        try:
            return method(given)
        finally:
            self._is_inside = False
            used.append(time.thread_time_ns() - began_ns)
            if call == _EXECUTE:
                self.found.append((at_ns, sum(used)))


def _hide(function: Any) -> None:
    """Let a function look like one of Python's import system, which calls it and which it calls.

    Python leaves such calls out of tracebacks, and a warning with a ``stacklevel`` names the line
    that imports a module.
    """
    function.__code__ = function.__code__.replace(
        co_filename="<frozen importlib._bootstrap_external>",
        co_name="_call_with_frames_removed",
    )


_hide(ImportClock._load)


def _found_by_others(
    clock: ImportClock, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in [each for each in sys.meta_path if each is not clock]:
        find_spec = getattr(finder, "find_spec", None)
        if find_spec is None:  # an old one, which Python asks in a way of its own, or passes by
            return None
        spec: ModuleSpec | None = find_spec(name, path, target)
        if spec is not None:
            return spec
    return None
