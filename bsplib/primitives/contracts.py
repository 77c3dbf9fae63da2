"""Docstrings of primitives that share a part of their contract with another primitive."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_Primitive = TypeVar("_Primitive", bound=Callable[..., Any])

_HEAD = re.compile(r"^(Args|Returns|Raises|Supersteps|Cost|Source):", re.MULTILINE)
"""The first line of a section of a docstring."""


def shares(*sections: str, of: Callable[..., Any]) -> Callable[[_Primitive], _Primitive]:
    """Return a decorator that copies sections of another primitive's docstring.

    They come before the sections that the docstring has itself. So ``help`` shows the whole
    contract, while the source has each part of it once.

    Args:
        *sections: heads of sections, such as ``"Raises"``.
        of: the other primitive.
    """

    def with_sections(primitive: _Primitive) -> _Primitive:
        if primitive.__doc__ and of.__doc__:  # python -OO has none
            own, theirs = inspect.cleandoc(primitive.__doc__), inspect.cleandoc(of.__doc__)
            copied = "".join(f"{_section(theirs, head)}\n\n" for head in sections)
            first = _HEAD.search(own)
            assert first is not None
            primitive.__doc__ = own[: first.start()] + copied + own[first.start() :]
        return primitive

    return with_sections


def _section(docstring: str, head: str) -> str:
    """Return the section of a docstring with this head."""
    rest = docstring[docstring.index(f"\n{head}:") + 1 :]
    following = _HEAD.search(rest, 1)
    return rest[: following.start() if following else None].rstrip()
