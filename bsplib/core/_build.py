"""What the core is compiled from, and the note that a build leaves beside its modules.

A module of the core is a file ``X.py`` with a file ``X.pxd`` beside it. A build writes one
extension module for each, and one with what they have in common. At its end it writes a note: a
digest of all these sources, and the names of the modules that were compiled. By the note bsplib
finds out whether an extension module is of these very sources. ``setup.py`` loads this file by its
path; hence it imports nothing but the standard library.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import source_hash
from typing import NamedTuple

FOLDER = os.path.dirname(os.path.abspath(__file__))
"""The folder of the core."""
SUFFIX = EXTENSION_SUFFIXES[0]
"""The end of the names of extension modules; it names the interpreter and the platform."""

SHARED = "_cython_shared"
"""The extension module with what Cython adds to a module; without it, each would have a copy."""

_NOT_COMPILED = frozenset({"__init__", "atomics"})
"""A package is no extension module, and ``atomics`` is included in the others."""


class Note(NamedTuple):
    """What a build wrote about itself."""

    digest: str
    """The digest of the sources that were compiled."""
    modules: frozenset[str]
    """The names of the modules that were compiled."""


def extension_names(folder: str = FOLDER) -> list[str]:
    """Return the names of the extension modules of the core, the one that all use first."""
    files = set(os.listdir(folder))
    names = (file.removesuffix(".pxd") for file in files if file.endswith(".pxd"))
    compiled = (name for name in names if f"{name}.py" in files and name not in _NOT_COMPILED)
    return [SHARED, *sorted(compiled)]


def digest(folder: str = FOLDER) -> str:
    """Return a digest of all sources of the core; it is no protection against forgery."""
    files = sorted(os.listdir(folder))
    kept = {f"{file.removesuffix('.pxd')}.py" for file in files if file.endswith(".pxd")}
    parts = []
    for file in files:
        if file.endswith(".pxd") or file in kept:
            with open(os.path.join(folder, file), "rb") as opened:
                content = opened.read()
            parts.append(f"{file} {len(content)}\n".encode() + content)
    return source_hash(b"".join(parts)).hex()


def read_note(folder: str = FOLDER) -> Note | None:
    """Return the note of a build for this interpreter; None where there is none."""
    try:
        with open(_note_path(folder), encoding="utf-8") as opened:
            first, *names = opened.read().split()
    except (OSError, ValueError):
        return None
    return Note(first, frozenset(names))


def write_note(folder: str, of: str, modules: Iterable[str]) -> None:
    """Write which modules in ``folder`` were compiled from the sources with the digest ``of``."""
    with open(_note_path(folder), "w", encoding="utf-8") as opened:
        opened.write("\n".join([of, *sorted(modules), ""]))


def remove_note(folder: str) -> None:
    """Remove the note of an earlier build."""
    if os.path.exists(_note_path(folder)):
        os.remove(_note_path(folder))


def extension_path(name: str, folder: str = FOLDER) -> str:
    """Return the path of the extension module with this name."""
    return os.path.join(folder, name + SUFFIX)


def _note_path(folder: str) -> str:
    return os.path.join(folder, f"_built{SUFFIX}.txt")
