"""The neighbours of a process in a ring, and the lines of programs that errors name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bsplib import Group


def left(bsp: Group) -> int:
    return (bsp.pid - 1) % bsp.nprocs


def right(bsp: Group) -> int:
    return (bsp.pid + 1) % bsp.nprocs


def line_of(function: Callable[..., Any], text: str) -> int:
    """Return the first line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def place_of(function: Callable[..., Any], comment: str) -> str:
    """Return the place, as file:line, of the line of a function that has a comment."""
    file = Path(function.__code__.co_filename).name
    return f"{file}:{line_of(function, f'# {comment}')}"
