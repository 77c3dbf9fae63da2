"""Real processes that stay from one test of a file to the next: to start them takes most time."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

import pytest

import bsplib

MADE_WITH = frozenset({"check", "machine"})
"""What bsplib.run is told for a run, and a pool when it is made."""
TOLD = {
    name
    for name, parameter in inspect.signature(bsplib.run).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
}
LOOKING = frozenset({"capfd", "capsys", "monkeypatch", "nothing_is_left", "recwarn"})
"""Fixtures of tests that change this process before the others are started, or look at it after."""


class Pools:
    """Pools by the number of their processes and what else they were made with."""

    def __init__(self) -> None:
        self._made: dict[Any, bsplib.Pool] = {}

    def run(self, main: Callable[..., Any], *args: Any, nprocs: int, **more: Any) -> list[Any]:
        """Run a program as :func:`bsplib.run` does, with what a pool can be told."""
        made_with = {name: more.pop(name) for name in MADE_WITH & more.keys()}
        key = (nprocs, str(sorted(made_with.items())))
        if key not in self._made:
            self._made[key] = bsplib.Pool(nprocs, **made_with)
        return self._made[key].run(main, *args, **more)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._made.values():
            pool.close()


def may_stay(item: pytest.Function) -> bool:
    """Tell whether the processes of a test's runs may be those of earlier ones.

    They are its own where it is marked ``fresh``, and where it looks at what a start or an end
    does.
    """
    return item.get_closest_marker("fresh") is None and LOOKING.isdisjoint(item.fixturenames)


def expects_an_error(item: pytest.Function) -> bool:
    """Tell whether a test expects an error; after that a pool has nobody to be kept."""
    names = item.function.__code__.co_names
    return bool(item.get_closest_marker("raises")) or any("raises" in name for name in names)


def can_be_kept(more: dict[str, Any]) -> bool:
    """Tell whether a pool can be told what is told to :func:`bsplib.run`."""
    return not (more.keys() & TOLD) - MADE_WITH
