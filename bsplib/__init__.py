"""Bulk synchronous parallel programs on numpy arrays.

>>> import bsplib
>>> def main(bsp):
...     total = bsp.zeros(bsp.nprocs)
...     bsp.put(0, bsp.pid, total, offset=bsp.pid)
...     bsp.sync()
...     return total.sum()
>>> bsplib.run(main, nprocs=4)
[np.float64(6.0), np.float64(0.0), np.float64(0.0), np.float64(0.0)]
"""

from importlib import import_module, util
from typing import TYPE_CHECKING

from bsplib import errors
from bsplib.errors import *  # noqa: F403  # all of them are public
from bsplib.version import __version__

if TYPE_CHECKING:
    from bsplib.group import Group
    from bsplib.loading import load
    from bsplib.machine import Machine
    from bsplib.running.launch import run
    from bsplib.running.mapping import map  # noqa: A004  # it does what the builtin does
    from bsplib.running.pool import Pool
    from bsplib.running.shared import shared

__all__ = [
    "Group",
    "Machine",
    "Pool",
    "__version__",
    "load",
    "map",
    "run",
    "shared",
]
__all__ += errors.__all__

_MODULES = {
    "Group": "group",
    "Machine": "machine",
    "Pool": "running.pool",
    "load": "loading",
    "map": "running.mapping",
    "run": "running.launch",
    "shared": "running.shared",
}
"""Where the names are defined that need numpy: what only installs bsplib does not load it."""


if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> object:
        """Import what is defined in another module when it is used first."""
        if name not in _MODULES:
            hint = ""
            if not name.startswith("_") and util.find_spec(f"bsplib.{name}") is None:  # no module
                group = import_module("bsplib.group")
                hint = group.other_names.of_package(name, group.Group)
            raise AttributeError(f"module 'bsplib' has no attribute {name!r}{hint}")
        value = globals()[name] = getattr(import_module(f"bsplib.{_MODULES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: object) -> None:
    """Add ``%%bsp`` to IPython or to a notebook; ``%load_ext bsplib`` calls this."""
    from bsplib.tools import notebook  # noqa: PLC0415  # only where there is IPython

    notebook.load(shell)


def unload_ipython_extension(shell: object) -> None:
    """End the processes of ``%%bsp``; ``%unload_ext bsplib`` calls this."""
    from bsplib.tools import notebook  # noqa: PLC0415  # as above

    notebook.unload(shell)
