"""From a trace to costs, the call graph, its critical paths, losses and a report.

:func:`load` reads a trace, for programs and notebooks; ``bsp report`` prints one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profiler.profile import Picture, Profile, RunProfile, load

__all__ = ["Picture", "Profile", "RunProfile", "load"]


def __getattr__(name: str) -> Any:
    """Import what a user names at the first use, so that ``import profiler`` is quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from profiler import profile  # noqa: PLC0415  # imported late, see above

    return getattr(profile, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
