"""Tells when a program has imported ``mpi4py.MPI``, before the program gets it.

The classes inherit nothing from ``importlib.abc``, which would load modules that are not needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader

_MODULE = "mpi4py.MPI"


class MpiFinder:
    """Finds ``mpi4py.MPI`` as others do, and tells when it has been imported.

    Args:
        imported: is called with the module.
    """

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self._imported = imported
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  # as the import system calls it
        target: ModuleType | None = None,  # noqa: ARG002  # the same
    ) -> ModuleSpec | None:
        """Return what the other finders find, with a loader that tells."""
        if fullname != _MODULE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # for the search of the others, and for good
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _ToldLoader(spec.loader, self._imported)  # type: ignore[assignment]
        return spec


class _ToldLoader:
    """Loads a module by another loader, and tells when it is there."""

    def __init__(self, loader: Loader, imported: Callable[[Any], None]) -> None:
        self._loader, self._imported = loader, imported

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._imported(module)
