"""What replaces the arguments of ``bsplib.run`` in a script: the options of ``bsp run``, for one.

A command cannot pass its options to a call that stands in a script. It lays an
:class:`Overrides`, which nothing changes afterwards, around the script, and the call
looks it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bsplib.backends.launching import Times
    from bsplib.machine import Machine


class Overrides(NamedTuple):
    """What holds for a run, whatever its arguments are; a field that is None leaves them."""

    nprocs: int | None = None
    backend: str | None = None
    profile: str | None = None
    profile_else: str | None = None
    """File of the records where neither ``profile`` nor the script names one."""
    machine: Machine | None = None
    check: bool = False
    lines: bool = True
    """False: no lines are sampled, even if the script asks for it."""
    timeout: float | None = None
    debugged: int | None = None
    label: bool = False
    records: bool = True
    """False: nothing is recorded, even if the script asks for it."""
    report_times: Callable[[Times], object] | None = None
    """Called with the virtual times of each run."""
    prepare: Callable[[], object] | None = None
    """Called in each process that is not forked, before it imports the program; it is pickled."""
    repeat: tuple[int, int] | None = None
    """Which repeat of the script its runs belong to, from 0 on, and of how many."""
    arguments: Mapping[str, Any] = MappingProxyType({})
    """Values for parameters of ``main``, by name."""
    called: Callable[[set[str]], object] | None = None
    """Called before each run, with those names of ``arguments`` that are parameters of ``main``."""


_in_context: ContextVar[Overrides] = ContextVar("overrides")
_in_force: list[Overrides] = [Overrides()]
"""The last one is for threads that a script starts: their context is empty."""


def current() -> Overrides:
    """Return what replaces the arguments of a run that is called here and now."""
    return _in_context.get(_in_force[-1])


def override(**changes: Any) -> Overrides:
    """Replace arguments of all runs from now on, as a command does whose process runs a script.

    It has no end, because threads that the script has left behind may call ``bsplib.run``
    after the last line of the script.

    Args:
        **changes: fields of :class:`Overrides`; the others stay as they are.
    """
    new = current()._replace(**changes)
    _in_context.set(new)
    _in_force.append(new)
    return new


@contextmanager
def overriding(**changes: Any) -> Iterator[None]:
    """Replace arguments of the runs inside the ``with`` block.

    Args:
        **changes: fields of :class:`Overrides`; the others stay as they are.
    """
    before = current()
    new = override(**changes)
    try:
        yield
    finally:
        _in_force[:] = [each for each in _in_force if each is not new]
        _in_context.set(before)
