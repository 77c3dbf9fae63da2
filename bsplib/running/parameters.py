"""The arguments of ``main`` by name: the numbers among them, and others in their place."""

from __future__ import annotations

import inspect
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MOST = 100
"""Greatest number of parameters that are kept."""
_GREATEST = 2**53


def numbers_among(
    main: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, float]:
    """Return the parameters of ``main`` that are numbers; of an array its number of elements.

    Args:
        main: the program; its first parameter is the group.
        args: its arguments after the group.
        kwargs: its keyword arguments.
    """
    try:
        bound = inspect.signature(main).bind(None, *args, **kwargs)
    except (TypeError, ValueError):
        return {}
    bound.apply_defaults()
    given: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        if inspect.signature(main).parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            given |= value
        else:
            given[name] = value
    found = {name: _number(value) for name, value in list(given.items())[:_MOST]}
    return {name: number for name, number in found.items() if number is not None}


def replaced(
    main: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    values: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any], set[str]]:
    """Return the arguments of ``main`` with other values for some of its parameters.

    Args:
        main: the program; its first parameter is the group.
        args: its arguments after the group.
        kwargs: its keyword arguments.
        values: the other values, by the name of a parameter; those of other names are ignored.

    Returns:
        The arguments, the keyword arguments, and the names that are parameters of ``main``.
    """
    try:
        signature = inspect.signature(main)
        bound = signature.bind_partial(None, *args, **kwargs)
    except (TypeError, ValueError):  # whoever runs it says why
        return args, kwargs, set()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [name for name, each in signature.parameters.items() if each.kind not in several][1:]
    used = {name for name in values if name in own}
    bound.arguments.update({name: values[name] for name in used})
    return bound.args[1:], bound.kwargs, used


def _number(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else None
    try:
        whole = operator.index(value)
    except TypeError:
        return None
    return whole if abs(whole) <= _GREATEST else None
