"""The packages that come with bsplib, found beside it.

``profiler``, ``webui`` and ``apps`` are names that a user's own module may have. Python
takes the first on its path, which may be the user's: ``python -m`` puts the working
directory first, and ``PYTHONPATH`` comes before installed packages. The ``bsp`` command
therefore looks for these packages in the folder of bsplib itself. This does not affect a
script that ``bsp run`` runs: it imports its own modules.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from bsplib.visible import visible

NAMES = ("profiler", "webui", "apps")
_HOME = str(Path(__file__).absolute().parents[1])


def prefer_own(*names: str) -> None:
    """Make imports of these names find the packages that come with bsplib, from now on.

    If another module of such a name would have been imported, a sentence is printed on
    standard error at the import.

    Args:
        names: of ``NAMES``.
    """
    found = {
        name for finder in sys.meta_path if isinstance(finder, _Finder) for name in finder.names
    }
    if new := [name for name in names if name not in found]:
        sys.meta_path.insert(0, _Finder(new))


def hiding(name: str) -> Path | None:
    """Return the file or folder that Python imports in place of a package of bsplib.

    Args:
        name: one of ``NAMES``.

    Returns:
        The file or folder that is first on Python's path; None if that is the package of
        bsplib, or if there is none.
    """
    own, first = PathFinder.find_spec(name, [_HOME]), PathFinder.find_spec(name)
    if own is None or first is None:
        return None
    place = _place(first)
    return None if place == _place(own) else place


def hidden_beside(script: Path) -> list[Path]:
    """Return the modules beside a script that it cannot import: bsp has imported its own."""
    found = [script.parent / f"{name}{end}" for name in NAMES for end in (".py", "/__init__.py")]
    return [path for path in found if path.is_file()]


def holds(name: str) -> bool:
    """Tell whether Python's path has a module of a dotted name; nothing is imported."""
    spec, path = None, None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), path)
        if spec is None:
            return False
        path = spec.submodule_search_locations or []
    return True


def _place(spec: ModuleSpec) -> Path:
    """Return the file of a module, or the folder of a package."""
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin or spec.name)


class _Finder:
    """Finds packages of bsplib before the path of Python is searched."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a package is; None for all other modules."""
        if path is not None or name not in self.names:
            return None
        own = PathFinder.find_spec(name, [_HOME])
        if own is not None and (other := hiding(name)):
            sys.stderr.write(
                f"bsplib: {visible(str(other))} hides the package {name} that comes with bsplib; "
                f"the one of bsplib is used here\n"
            )
        return own
