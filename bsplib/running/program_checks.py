"""Whether ``main`` can be run with the arguments that a caller gives, before anything starts."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bsplib.errors import ArgumentError
from bsplib.running.options import PoolOptions

KEYWORDS = ("nprocs", *PoolOptions.__annotations__, "timeout")
"""Keywords of :func:`bsplib.run`, which it does not pass on to ``main``."""

_NEVER_RUNS = (
    (inspect.isgeneratorfunction, "a generator function: its body has a yield"),
    (inspect.iscoroutinefunction, "an async function"),
    (inspect.isasyncgenfunction, "an async generator function"),
)


_FOR_NPROCS = {"n", "p", "np", "num", "nproc", "procs", "processes", "num_procs", "n_procs"} | {
    *("numprocs", "nprocesses", "num_processes", "n_processes", "ranks", "size", "workers"),
    *("n_jobs", "processors", "ntasks", "world_size"),
}
"""Words under which other libraries, and the command line, take the number of processes."""


_known: WeakKeyDictionary[FunctionType, set[tuple[Any, ...]]] = WeakKeyDictionary()
"""What programs can be called with, as was found before: the keywords that are not theirs, the
number of arguments, and names of others. To find this out takes most of an empty run."""


def check_program(
    main: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    keywords: tuple[str, ...] = KEYWORDS,
) -> None:
    """Check that ``main(bsp, *args, **kwargs)`` can be called and does something.

    Args:
        main: the program.
        args: its arguments, after the group.
        kwargs: its keyword arguments.
        keywords: keywords that the caller of this function does not pass on to ``main``.

    Raises:
        ArgumentError: ``main`` is no function, cannot take the arguments, has a parameter
            with the name of one of ``keywords``, or would not run its body when it is called.
    """
    call = keywords, len(args), *kwargs
    is_function = type(main) is FunctionType
    if is_function and call in _known.get(main, ()):
        return
    signature = _checked_signature(main, keywords)
    if signature is not None:
        _check_call(main, signature, args, kwargs, keywords)
    if is_function:
        _known.setdefault(main, set()).add(call)


def _check_call(
    main: Callable[..., Any],
    signature: inspect.Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    keywords: Sequence[str],
) -> None:
    """Raise if ``main`` cannot be called with the arguments."""
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as reason:
        raise ArgumentError(
            f"run: {_name(main)}{signature} cannot take {_call(args, kwargs)}: {reason}"
            f"{_hint(args, kwargs, signature, keywords)}"
        ) from None


def _checked_signature(main: Any, keywords: Sequence[str]) -> inspect.Signature | None:
    """Return the signature of ``main``, after the checks that do not need the arguments."""
    if not callable(main):
        raise ArgumentError(f"run: main is {_brief(main)}, which is no function; {_way_out(main)}")
    name = _name(main)
    check_runs("run", main, "syncs and returns its result")
    signature = _signature(main)
    if signature is not None:
        _check_names(name, signature, keywords)
    return signature


def check_runs(operation: str, function: Callable[..., Any], does: str) -> None:
    """Check that a call of a function executes its body.

    Args:
        operation: what the function is given to.
        function: what is called.
        does: what a function does that can be given to it.

    Raises:
        ArgumentError: it is a generator function, or an async one.
    """
    for never_runs, kind in _NEVER_RUNS:
        if never_runs(_innermost(function)):
            raise ArgumentError(
                f"{operation}: {_name(function)} is {kind}, so that a call does not run it; write "
                f"a function that {does}"
            )


def check_options(operation: str, options: Iterable[str], keywords: Sequence[str]) -> None:
    """Check that an operation has some options.

    Args:
        operation: what they are given to.
        options: their names.
        keywords: those of the operation.

    Raises:
        ArgumentError: one of them is none.
    """
    for word in options:
        if word not in keywords:
            near = "nprocs" if word.lower() in _FOR_NPROCS else _nearest(word, keywords)
            way_out = f"write {near}=" if near else f"there are {', '.join(keywords)}"
            raise ArgumentError(f"{operation}: there is no option {word}=; {way_out}")


def _nearest(word: str, words: Sequence[str]) -> str | None:
    """Return the word that a mistyped one is most like; None if it is like none."""
    import difflib  # noqa: PLC0415  # few calls are wrong

    return next(iter(difflib.get_close_matches(word, words, 1)), None)


def _innermost(main: Callable[..., Any]) -> Any:
    while isinstance(main, functools.partial):
        main = main.func
    is_object = not inspect.isroutine(main) and not inspect.isclass(main)
    return getattr(main, "__call__", main) if is_object else main  # noqa: B004  # the method itself is needed


def _signature(main: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of ``main``; None where it has none, as some builtins."""
    try:
        return inspect.signature(main)
    except (TypeError, ValueError):
        return None


def _check_names(name: str, signature: inspect.Signature, keywords: Sequence[str]) -> None:
    unnamed = (  # which no keyword is given to
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )
    parameters = signature.parameters.values()
    taken = [p.name for p in parameters if p.name in keywords and p.kind not in unnamed]
    if taken:
        raise ArgumentError(
            f"run: {name} has a parameter {taken[0]!r}, a keyword that run takes for itself; "
            f"give the parameter another name"
        )


def _hint(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    signature: inspect.Signature,
    keywords: Sequence[str],
) -> str:
    """Return a proposal for the call, where the mistake suggests one."""
    for word in kwargs:
        if word not in signature.parameters:
            if word.lower() in _FOR_NPROCS and "nprocs" in keywords:
                return f"; write nprocs= if that is meant by {word}="
            near = _nearest(word, [*keywords, *signature.parameters])
            return f"; write {near}= if that is meant by {word}=" if near else ""
    if not signature.parameters:
        return "; its first parameter is the group, as in def main(bsp)"
    if "nprocs" in keywords and args and type(args[-1]) is int:
        return f"; write nprocs={args[-1]} if that is to be the number of processes"
    if not args:
        return "; its arguments follow it, as in run(main, 10)"
    return ""


def _call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the arguments of a call as text."""
    values = [_brief(value) for value in args]
    values += [f"{word}={_brief(value)}" for word, value in kwargs.items()]
    return f"({', '.join(['bsp', *values])})"


def _name(main: Callable[..., Any]) -> str:
    return getattr(_innermost(main), "__name__", None) or type(main).__name__


def _brief(value: Any) -> str:
    """Return a value in a few characters, even if its ``repr`` is long or raises."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # anything may go wrong in a foreign __repr__
        text = ""
    short = len(text) <= 40 and "\n" not in text
    return text if text and short else f"<{type(value).__name__}>"


def _way_out(main: Any) -> str:
    if inspect.iscoroutine(main) or inspect.isgenerator(main):
        return "run takes the function itself, not what a call of it returns"
    if main is None:
        return "write run(main), not run(main()), which would call it at once"
    return "write run(main, ...) with a function whose first parameter is the group"


# -- the arguments of ``main`` by name: the numbers among them, and others in their place ---------


_GREATEST = 2**53
"""Integers beyond this are not exact as floats."""


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
    found = {name: _number(value) for name, value in given.items()}
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
