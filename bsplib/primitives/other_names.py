"""What those write who know other libraries, and how it is written here."""

from __future__ import annotations

import inspect
import linecache
import re
from types import TracebackType

from bsplib import call_site

_HERE = {
    "rank": "pid",
    "get_rank": "pid",
    "size": "nprocs",
    "get_size": "nprocs",
    "bcast": "broadcast",
    "barrier": "sync",
    "fence": "sync",
    "wait": "sync",
    "recv": "messages or move",
    "irecv": "messages or move",
    "isend": "send",
    "sendrecv": "send, then sync and messages",
    "reduce_all": "allreduce",
    "push_register": "push_reg",
    "pop_register": "pop_reg",
    "sub": "split or partition",
    "begin": "bsplib.run",
    "init": "bsplib.run",
    "end": "bsplib.run",
    "finalize": "bsplib.run",
    "wtime": "time",
    "probe": "qsize",
    "iprobe": "qsize",
    "ones": "zeros or array",
}
"""By the name in small letters, without a prefix such as ``bsp_``."""

_WRONG_ARGUMENTS = re.compile(r"(?:\w+\.)?(\w+)\(\) (?:takes|got|missing) ")
_NUMBER_CALLED = re.compile(r"\.(pid|nprocs)\s*\(")


def here(name: str, group: type) -> str | None:
    """Return the name here of what another library calls so; None if nothing is known.

    Args:
        name: an attribute that a group does not have.
        group: the class of groups; ``Allreduce``, ``Gatherv`` and ``bsp_put`` are its methods.
    """
    plain = name.lower().removeprefix("bsp_")
    for form in (plain, plain.removesuffix("v")):
        if form in _HERE:
            return _HERE[form]
        if not form.startswith("_") and hasattr(group, form):
            return form
    return None


def of_package(name: str, group: type) -> str:
    """Return what to write in place of ``bsplib.NAME``; "" if nothing is known."""
    known = name if hasattr(group, name) else here(name, group)
    if known is None:
        return ""
    if known.startswith("bsplib."):
        return f"; write {known}"
    return f"; write bsp.{known}, where bsp is the group that main is given"


def right_call(error: TypeError, group: type) -> str:
    """Return how a call of a group is written that Python refused for its arguments.

    Args:
        error: with its traceback.
        group: the class of groups.

    Returns:
        A sentence; "" where the error has another reason.
    """
    line = _last_line(error.__traceback__)
    if "is not callable" in str(error):
        number = _NUMBER_CALLED.search(line)
        return f"{number[1]} is a number: write {number[1]} without brackets" if number else ""
    refused = _WRONG_ARGUMENTS.match(str(error))
    if not refused or f".{refused[1]}(" not in line:
        return ""
    method = getattr(group, refused[1], None)
    return f"write {refused[1]}{_arguments_of(method)}" if method else ""


def _last_line(traceback: TracebackType | None) -> str:
    """Return the line of the program that made the call; frames of bsplib may follow its own."""
    line = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not call_site.is_own(code):
            line = linecache.getline(code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return line


def _arguments_of(method: object) -> str:
    """Return the arguments of a method without itself, their types and long defaults."""
    _, *parameters = inspect.signature(method).parameters.values()  # type: ignore[arg-type]
    plain = [
        parameter.replace(
            annotation=inspect.Parameter.empty,
            default=_AsWritten(getattr(parameter.default, "__name__", parameter.default))
            if parameter.default is not inspect.Parameter.empty
            else inspect.Parameter.empty,
        )
        for parameter in parameters
    ]
    return str(inspect.Signature(plain))


class _AsWritten(str):
    """A default that shows as it would be written."""

    def __repr__(self) -> str:
        return str(self)
