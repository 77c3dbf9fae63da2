"""Names and values of compared nodes, for terminals and sentences."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.compare.matching import call_at
from bsplib.profiler.rows import EXACT, QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsplib.profiler.compare.comparison import Compared, Side

MORE, LESS = "▲", "▼"
"""Marks of a value that is greater, and of one that is less, after."""


def label(node: Compared) -> str:
    """Return the name of a node, with what it was called before where it moved.

    Args:
        node: a function, such as ``Solver.step``, or a cost centre, such as
            ``solve · mg.py line 31 → 33 · allreduce``.
    """
    if node.known.node.kind == "function":
        return _function(_sides(node))
    parts = [_parts(side) for side in _sides(node)]
    return _joined(parts)


def short_label(node: Compared) -> str:
    """Return the name of a cost centre without that of its function, where it has one.

    Args:
        node: a cost centre, such as ``line 31 → 33 · allreduce``; one that moved to another
            function is named with both.
    """
    sides = _sides(node)
    if len({side.function.name for side in sides}) > 1 or len({_file(side) for side in sides}) > 1:
        return label(node)
    return _joined([(f"line {side.node.line}", _call(side)) for side in sides])


def values(node: Compared, quantity: str) -> str:
    """Return a quantity before and after, such as ``1.12 s ▼ 0.98 s``; once if it is equal.

    A change too small for the digits that are shown has a mark only where the quantity
    repeats exactly, as h does.

    Args:
        node: a node.
        quantity: one of ``QUANTITIES``.
    """
    text = QUANTITIES[quantity].text
    before, after = node.values(quantity)
    if before is None or after is None:
        return text(after if before is None else before)  # type: ignore[arg-type]  # one is known
    if before == after or (text(before) == text(after) and quantity not in EXACT):
        return text(after)
    mark = MORE if after > before else LESS
    return f"{text(before)} {mark}" + (f" {text(after)}" if text(before) != text(after) else "")


def _sides(node: Compared) -> list[Side]:
    return [side for side in (node.before, node.after) if side is not None]


def _function(sides: list[Side]) -> str:
    """Return the name of a function, with its file where that changed."""
    name = _changed([fmt.visible(side.node.name) for side in sides])
    file = _changed([_file(side) for side in sides])
    return f"{name} ({file})" if len({_file(side) for side in sides}) > 1 else name


def _parts(side: Side) -> tuple[str, str, str]:
    """Return function, line and call of a cost centre."""
    line = f"{_file(side)} line {side.node.line}"
    return fmt.visible(side.function.name), line, _call(side)


def _call(side: Side) -> str:
    """Return what a cost centre calls, and how it ends a superstep if not by sync."""
    kind = "" if side.node.sync == "sync" else side.node.sync
    return " ".join(filter(None, (fmt.visible(call_at(side.node)), kind)))


def _joined(sides: Sequence[tuple[str, ...]]) -> str:
    parts = zip(*sides, strict=True)
    return " · ".join(filter(None, (_changed(list(part)) for part in parts)))


def _file(side: Side) -> str:
    return fmt.visible(posixpath.basename(side.node.file))


def _changed(texts: list[str]) -> str:
    """Return a text before and after, without the words that both begin with; once if equal."""
    first, *others = texts
    if not others or others[0] == first:
        return first
    head, _, tail = others[0].rpartition(" ")
    return f"{first} → {tail if head and first.startswith(f'{head} ') else others[0]}"
