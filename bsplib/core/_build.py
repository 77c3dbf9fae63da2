"""What is compiled, and the note that a build leaves in the folder of the core.

A compiled module is a file ``X.py`` with a file ``X.pxd`` beside it, in the core or among the
kernels of the applications. A build writes one extension module for each, and one with what they
have in common. When all were compiled it writes a note, a digest of all these sources. By the note
bsplib finds out whether extension modules are of these very sources; without a note they are what a
build has left that failed. ``setup.py`` loads this file by its path; hence it imports nothing but
the standard library.

Names begin in the package: ``core.engine``. A *root* is the folder of the package, in a checkout
or in a build.
"""

from __future__ import annotations

import contextlib
import os
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import source_hash

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the package."""
PACKAGES = ("core", "apps.kernels")
"""Packages of which modules are compiled."""
SUFFIX = EXTENSION_SUFFIXES[0]
"""The end of the names of extension modules; it names the interpreter and the platform."""

SHARED = "core._cython_shared"
"""The extension module with what Cython adds to a module; without it, each would have a copy."""

_INCLUDED = "core.atomics"
"""It is included in the others."""


def _sources(root: str) -> list[str]:
    """Return the names of all modules that have types beside them, in order."""
    return [
        f"{package}.{file.removesuffix('.pxd')}"
        for package in PACKAGES
        for file in sorted(os.listdir(path_of(package, "", root)))
        if file.endswith(".pxd")
    ]


def extension_names(root: str = ROOT) -> list[str]:
    """Return the names of the extension modules, the one that all use first."""
    return [SHARED, *(name for name in _sources(root) if name != _INCLUDED)]


def digest(root: str = ROOT) -> str:
    """Return a digest of all sources; it is no protection against forgery."""
    parts = []
    for name in _sources(root):
        for ending in (".pxd", ".py"):
            with open(path_of(name, ending, root), "rb") as opened:
                content = opened.read()
            parts.append(f"{name}{ending} {len(content)}\n".encode() + content)
    return source_hash(b"".join(parts)).hex()


def is_compiled(root: str = ROOT) -> bool:
    """Tell whether all extension modules are there."""
    return all(os.path.exists(extension_path(name, root)) for name in extension_names(root))


def read_note(root: str = ROOT) -> str | None:
    """Return the digest of the sources that were compiled; None where there is no note."""
    try:
        with open(_note_path(root), encoding="utf-8") as opened:
            return opened.read().split()[0]
    except (OSError, ValueError, IndexError):
        return None


def write_note(root: str, of: str) -> None:
    """Write that all modules were compiled from the sources with the digest ``of``."""
    with open(_note_path(root), "w", encoding="utf-8") as opened:
        opened.write(f"{of}\n")


def remove_note(root: str) -> None:
    """Remove the note of an earlier build."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(_note_path(root))


def path_of(name: str, ending: str, root: str = ROOT) -> str:
    """Return the path of the file of a module with this ending."""
    return os.path.join(root, *name.split(".")) + ending


def extension_path(name: str, root: str = ROOT) -> str:
    """Return the path of the extension module with this name."""
    return path_of(name, SUFFIX, root)


def _note_path(root: str) -> str:
    return os.path.join(root, "core", f"_built{SUFFIX}.txt")
