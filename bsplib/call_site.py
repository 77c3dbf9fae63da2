"""The line of the program on which a primitive was called, for errors.

The **user's frame** of a stack is its innermost frame outside bsplib. Where an error was
raised inside the standard library or an installed package, it is the innermost frame
outside these, too.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any

_CALLS_MAIN = "run_task"
_OUTERMOST = (_CALLS_MAIN, "run_process")
_ENDS_MAIN = "finish_main"
_DOES_ITEMS = "do_items"
"""The program of ``bsplib.map``, below which there may be no line of the user."""
_CALLS_FUNCTION = "_call_function"
"""The part of it that calls the function of the user."""
_WRAPPERS = ("timed", "__next__", "pid", "nprocs", "machine")
"""Names of functions that wrap primitives, and of properties: they are no primitives."""
_BELOW_CORE = {
    **dict.fromkeys(
        (
            *("meet", "check_current", "announce", "check_kinds", "prepare", "answer"),
            *("take_answers", "write_answer", "write_gaps", "write_strided"),
            *("write_placed", "fetch", "after_delivery", "arrived", "delivered", "fail_for_good"),
        ),
        "sync",
    ),
    "put_slowly": "put",
    "send_slowly": "send",
    "get_slowly": "get",
    "decode": "messages",
    "check_oblsync": "oblsync",
}
"""The primitive from which the engine calls a function: where the core is compiled, the primitive
itself has no frame."""
_SYNCS = ("sync", "oblsync", "done", "__exit__")
"""Primitives that end a superstep by themselves; a collective calls one of them."""
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PROGRAMS = _HERE + "apps" + os.sep
"""How the names of files begin that come with bsplib and are programs like those of a user."""
_COMPILED = "bsplib/core/"
"""How the names of the sources of compiled modules begin, in tracebacks."""
_OWN = [_HERE, _COMPILED]
"""How the names of files begin that are no part of the program: bsplib, and further backends."""
_CORE = (_HERE + "core" + os.sep, _COMPILED)
"""How the names of files of the core begin."""
_BACKENDS = [_HERE + "backends" + os.sep]
"""Those of backends."""
_MEETINGS = ("exchange", "exchange_oblivious", "wait", "wait_for", "sleep_while")
"""Functions of a backend, and below it, in which a process waits for others."""

END = "end of main"
BEFORE = "before main"
IN_MAP = "in map"


def add_backend(source: str) -> None:
    """Count a backend that is no part of bsplib as if it were.

    Args:
        source: its file, or its folder with a separator at the end.
    """
    _OWN.append(source)
    _BACKENDS.append(source)


def is_own(code: CodeType) -> bool:
    """Tell whether code is part of bsplib."""
    return is_own_file(code.co_filename)


def is_own_file(name: str) -> bool:
    """Tell whether a file is part of bsplib, and no program that comes with it."""
    return name.startswith(tuple(_OWN)) and not name.startswith(_PROGRAMS)


@functools.cache
def _installed() -> tuple[str, ...]:
    """Return how the names of files begin that come with Python, or were installed into it."""
    import sysconfig  # noqa: PLC0415  # only who reads a stack asks for it

    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(os.path.realpath(paths[name]) + os.sep for name in names if name in paths)


def is_installed(name: str) -> bool:
    """Tell whether a file belongs to the standard library or to an installed package."""
    return name.startswith(("<frozen", *_installed())) and not name.startswith(tuple(_OWN))


def is_of_handler(error: BaseException) -> bool:
    """Tell whether a handler of the program's signals raised an error that code of bsplib met.

    Python calls such a handler between any two instructions of the main thread, those of bsplib
    too. What it raises belongs to the program, whatever its class: a TimeoutError is an OSError.
    So a part of bsplib that goes on after an error asks this first.

    Args:
        error: was raised below a function of bsplib that calls nothing but bsplib, the standard
            library, numpy and backports.zstd.
    """
    return not all(
        is_own_file(file) or is_called_by_bsplib(file)
        for file, *_ in stack_of_error(error.__traceback__)
    )


def is_called_by_bsplib(file: str) -> bool:
    """Tell whether a file is of the standard library, or of a package that bsplib calls."""
    called = [sys.modules[name] for name in ("numpy", "backports.zstd") if name in sys.modules]
    folders = tuple(folder + os.sep for package in called for folder in package.__path__)
    packages = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
    is_library = is_installed(file) and not any(name in file for name in packages)
    return is_library or file.startswith(folders)


def does_items(code: CodeType) -> bool:
    """Tell whether code is the part of ``bsplib.map`` that calls the function of the program."""
    return code.co_name == _CALLS_FUNCTION and is_own(code)


def code_of_map(frame: FrameType) -> CodeType | None:
    """Return the code of the function whose items ``bsplib.map`` does in a frame; None elsewhere.

    A reader of a trace looks for this function, and not for the loop of bsplib.
    """
    if frame.f_code.co_name != _DOES_ITEMS or not is_own(frame.f_code):
        return None
    return getattr(frame.f_locals["function"], "__code__", None)


def is_hidden(code: CodeType) -> bool:
    """Tell whether code has no place in a recorded stack.

    Such code is bsplib's own: either a wrapper that measures the time of a primitive, or a part of
    the core, which has no frames where it is compiled.
    """
    return is_own(code) and (code.co_name in _WRAPPERS or code.co_filename.startswith(_CORE))


def frames_of_sync(codes: Sequence[CodeType]) -> int:
    """Return how many frames of a stack belong to the primitive that ends the superstep.

    These frames are the primitive itself, all functions of bsplib that it has called, and a
    primitive or wrapper that has called it, as ``__exit__`` calls ``done``. The frames that are
    left belong to the program, or to a collective that has called the primitive.

    Args:
        codes: the code of each frame, the innermost first.
    """
    count = 0
    for number, code in enumerate(codes, 1):
        if not is_own(code):
            break
        if code.co_name in _SYNCS or (count and code.co_name in _WRAPPERS):
            count = number
        elif count:
            break
    return count


def caller() -> FrameType | None:
    """Return the innermost frame of the program; None once ``main`` has returned."""
    frame: FrameType | None = sys._getframe(1)
    between = contextlib.__file__  # a with statement and bsplib
    while frame is not None and (is_own(frame.f_code) or frame.f_code.co_filename == between):
        if frame.f_code.co_name == _CALLS_MAIN:
            return None
        frame = frame.f_back
    return frame


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the line of the program that calls a primitive, once for each such line."""
    frame = caller()
    if frame is None:
        warnings.warn_explicit(text, category, END, 0)
        return
    known = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, registry=known)


def file_and_line() -> tuple[str, int]:
    """Return the whole name of the file of the call, and its line there."""
    frame = caller()
    return (END, 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def operation() -> str:
    """Return the name of the primitive that the program called; ``main`` once it returned."""
    frame: FrameType | None = sys._getframe(1)
    name = "main"
    while frame is not None and is_own(frame.f_code):
        if frame.f_code.co_name == _CALLS_MAIN:
            return "main"
        if frame.f_code.co_name not in _WRAPPERS:
            name = frame.f_code.co_name
        frame = frame.f_back
    return {"__exit__": "done", "__enter__": "with", **_BELOW_CORE}.get(name, name)


def line() -> str:
    """Return file and line of the call, such as ``sort.py:31``."""
    frame = caller()
    return END if frame is None else _words(frame.f_code.co_filename, frame.f_lineno)


def here(primitive: str) -> tuple[str, str]:
    """Return a primitive and the line of the present call, as plain values."""
    return primitive, line()


def line_of_error(traceback: TracebackType | None) -> str:
    """Return file and line of the user's frame in which an error was raised."""
    return line_in(stack_of_error(traceback))


def line_in(stack: Iterable[tuple[str, int, str]]) -> str:
    """Return file and line of the user's frame of a stack.

    Args:
        stack: file, line and function of each frame, the innermost first; frames outside
            the function that calls ``main`` are ignored.
    """
    own: list[str] = []
    installed = None
    for file, line, function in stack:
        if is_own_file(file):
            own.append(function)
            if function in _OUTERMOST:
                break
        elif not is_installed(file):
            return _words(file, line)
        else:
            installed = installed or _words(file, line)
    if _CALLS_MAIN not in own:
        return BEFORE
    if installed is not None or _ENDS_MAIN in own:
        return installed or END
    return IN_MAP if _DOES_ITEMS in own else BEFORE


def activity(stack: Iterable[tuple[str, int, str]], *, waits: bool = False) -> str:
    """Return a text that says whether a process waits or computes.

    Args:
        stack: file, line and function of each frame, the innermost first.
        waits: it is known to wait, at the end of a superstep; otherwise the frames show it.
    """
    primitive = "sync" if waits else ""  # the compiled core has no frame
    otherwise = "beginning or ending"
    for file, _, function in stack:
        if is_own_file(file):
            if function in _OUTERMOST:
                break
            if function == _DOES_ITEMS:
                otherwise = "computing"
            if file.startswith(tuple(_BACKENDS)) or function in _MEETINGS:
                waits = waits or function in _MEETINGS
                primitive = primitive or ("sync" if waits else "")
            elif function not in _WRAPPERS:
                primitive = _BELOW_CORE.get(function, function)
        elif not is_installed(file):
            if not primitive:
                return f"computing in {function}"
            return f"{'waiting' if waits else 'computing'} in {primitive}"
    return "waiting for the others" if waits else otherwise


def stack_of(frame: FrameType | None) -> list[tuple[str, int, str]]:
    """Return file, line and function of a frame and of those that called it."""
    stack = []
    while frame is not None:
        stack.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return stack


def stack_of_error(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    """Return file, line and function of each frame of a traceback, the innermost first."""
    return [*_lines(traceback)][::-1]


def _lines(traceback: TracebackType | None) -> Iterator[tuple[str, int, str]]:
    while traceback is not None:
        code = traceback.tb_frame.f_code
        function = code.co_name
        if code.co_filename.startswith(_COMPILED):
            function = function.rpartition(".")[2]  # after module and class
        yield code.co_filename, traceback.tb_lineno, function
        traceback = traceback.tb_next


def _words(file: str, line: int) -> str:
    return f"{os.path.basename(file)}:{line}"


def assigned_name() -> str | None:
    """Return the variable to which the caller assigns the result of its present call, if any."""
    frame = caller()
    if frame is None:
        return None
    following = (each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti)
    store = next(following, None)
    if store is None or not store.opname.startswith("STORE_") or "ATTR" in store.opname:
        return None
    name = store.argval[0] if isinstance(store.argval, tuple) else store.argval
    return name if isinstance(name, str) else None


def name_of(value: Any) -> str | None:
    """Return the name of a local variable of the caller that has this value."""
    frame = caller()
    if frame is None:
        return None
    return next((name for name, known in frame.f_locals.items() if known is value), None)
