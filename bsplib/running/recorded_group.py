"""The class of the groups of a recorded run on real processes.

A collective is a call as a whole, as it is in virtual time: its copies, and the pickles of its
values, are communication. The sync in it is none of a call, and what it combines is computation.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from bsplib.group import Group
from bsplib.primitives import combinations, exchanges

if TYPE_CHECKING:
    from collections.abc import Callable

_COLLECTIVES = (combinations.__name__, exchanges.__name__)
"""The modules of the collectives."""


@functools.cache
def recorded_group() -> type[Group]:
    """Return the class of the groups of processes that are recorded."""
    namespace = {
        name: _timed(method)
        for name, method in vars(Group).items()
        if getattr(method, "__module__", None) in _COLLECTIVES
    }
    return cast("type[Group]", type("RecordedGroup", (Group,), namespace))


def _timed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a collective that is a call from its beginning to its end."""

    @functools.wraps(method)
    def timed(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        engine = self._engine
        engine.begin_call()
        try:
            return method(self, *args, **kwargs)
        finally:
            engine.end_call()

    return timed
