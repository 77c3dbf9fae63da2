"""``%load_ext bsplib``: cells of a notebook that run as BSP programs, by ``%%bsp``."""

from __future__ import annotations

from typing import Any

from bsplib.tools.notebook.magic import BspMagic

_loaded: dict[int, BspMagic] = {}
"""By the identity of the shell."""


def load(shell: Any) -> None:
    """Add ``%%bsp`` to a shell of IPython."""
    magic = _loaded[id(shell)] = BspMagic(shell)
    magic.register()


def unload(shell: Any) -> None:
    """Take ``%%bsp`` away from a shell, and end its processes."""
    if (magic := _loaded.pop(id(shell), None)) is not None:
        magic.close()
