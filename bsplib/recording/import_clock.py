"""How long a process imports modules inside ``main``.

A process imports a module at its first use, and some modules of a library import themselves late.
The first random number of numpy takes some 8 ms for that reason: most of the computation of a small
run, and nothing that grows with the data. The clock is the first of the finders in
``sys.meta_path``, which Python asks only for modules that are not loaded, so that importing a
loaded module costs nothing more.
"""

from __future__ import annotations

import functools
import resource
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
from typing import Any, NamedTuple

_LOADERS = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
"""Loaders of Python, each of which loads one module. Others may load several at once, as those of
test runners do: what they load is not noted."""
_MOST = 1000
"""Greatest number of imports that are noted."""


class Import(NamedTuple):
    """A module that was imported, with all that it imported itself."""

    at_ns: int
    """When it began, on the clock of the records."""
    cpu_ns: int
    """CPU time of the thread until it was loaded."""
    faults: int
    """Page faults without input meanwhile."""


class ImportClock:
    """Notes the imports of the thread that makes it, until it is closed.

    Args:
        began_ns: time 0 of the records.
    """

    def __init__(self, began_ns: int) -> None:
        self.found: list[Import] = []
        """The imports, in order."""
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
        if self._is_inside or threading.get_ident() != self._thread:
            return None
        began = self._read()
        self._is_inside = True  # a finder may import, too
        try:
            spec = _found_by_others(self, name, path, target)
        finally:
            self._is_inside = False
        loader: Any = None if spec is None else spec.loader
        if type(loader) in _LOADERS and "exec_module" not in vars(loader):
            execute = loader.exec_module
            loader.exec_module = functools.partial(self._execute, loader, execute, began)
        return spec

    def _execute(
        self,
        loader: Any,
        execute: Callable[[ModuleType], None],
        began: Import,
        module: ModuleType,
    ) -> None:
        """Execute a module, and note how long its import took; the loader is as it was then."""
        vars(loader).pop("exec_module", None)
        self._is_inside = True
        try:
            execute(module)
        finally:
            self._is_inside = False
            self._note(began)

    def _note(self, began: Import) -> None:
        while self.found and self.found[-1].at_ns >= began.at_ns:
            self.found.pop()  # an extension module imports others while it is created
        ended = self._read()
        if len(self.found) < _MOST:
            self.found.append(
                Import(began.at_ns, ended.cpu_ns - began.cpu_ns, ended.faults - began.faults)
            )

    def _read(self) -> Import:
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        return Import(time.perf_counter_ns() - self._began_ns, time.thread_time_ns(), faults)


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
