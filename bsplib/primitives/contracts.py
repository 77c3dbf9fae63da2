"""Docstrings of primitives that share a part of their contract with another primitive."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_Primitive = TypeVar("_Primitive", bound=Callable[..., Any])

_ORDER = ("Args", "Returns", "Raises", "Supersteps", "Cost", "Source")
"""Heads of the sections of a docstring, in order."""
_HEAD = re.compile(rf"^({'|'.join(_ORDER)}):", re.MULTILINE)
"""The first line of a section."""


def shares(*sections: str, of: Callable[..., Any]) -> Callable[[_Primitive], _Primitive]:
    """Return a decorator that copies sections of another primitive's docstring.

    So ``help`` shows the whole contract, while the source has each part of it once.

    Args:
        *sections: heads of sections, such as ``"Raises"``.
        of: the other primitive.
    """

    def with_sections(primitive: _Primitive) -> _Primitive:
        if primitive.__doc__ and of.__doc__:  # python -OO has none
            before, own = _parts(primitive.__doc__)
            _, theirs = _parts(of.__doc__)
            whole = {head: theirs[head] for head in sections} | own
            in_order = [whole[head] for head in _ORDER if head in whole]
            primitive.__doc__ = "\n\n".join([before, *in_order])
        return primitive

    return with_sections


def _parts(docstring: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the sections of a docstring, and the sections by their heads."""
    text = inspect.cleandoc(docstring)
    heads = [*_HEAD.finditer(text)]
    starts = [head.start() for head in heads]
    ends = [*starts[1:], len(text)]
    parts = {
        head[1]: text[start:end].rstrip()
        for head, start, end in zip(heads, starts, ends, strict=True)
    }
    return text[: starts[0] if starts else None].rstrip(), parts
