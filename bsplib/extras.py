"""Packages that few commands need, and the extras of bsplib that install them.

A module names such a package at its top, which imports nothing yet::

    optimize = optional_module("scipy.optimize")

The package is imported when an attribute of it is used. Where it is not installed, this
raises an error that names the extra. A command that cannot work without a package calls
:func:`need` before it begins.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from bsplib.errors import MissingExtraError

EXTRAS = {
    "IPython": "notebook",
    "duckdb": "sql",
    "matplotlib": "predict",
    "mpi4py": "mpi",
    "pandas": "notebook",
    "pyarrow": "sql",
    "scipy": "predict",
}
"""For each package, the extra that installs it."""


def need(name: str) -> ModuleType:
    """Import a module of a package that an extra installs.

    Args:
        name: name of the module, such as ``"scipy.optimize"``.

    Returns:
        The module.

    Raises:
        MissingExtraError: the package is not installed, or cannot be imported.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        state = "is not installed" if missing else f"cannot be imported ({error})"
        raise MissingExtraError(
            f"this needs {package}, which {state}; it is in the extra {EXTRAS[package]!r}: "
            f"pip install {package}"
        ) from None


def optional_module(name: str) -> Any:
    """Return a replacement for a module, which imports it when an attribute is used.

    Args:
        name: name of the module. The first use calls :func:`need`, and may raise its error.
    """
    if name.partition(".")[0] not in EXTRAS:
        raise ValueError(f"{name} is in no extra; the packages in extras are {', '.join(EXTRAS)}")
    return _Late(name)


class _Late:
    """A module that is imported when an attribute of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # pickle and others only test whether it exists
            raise AttributeError(attribute)
        return getattr(need(self._name), attribute)
