"""Writes the methods of the proxies: each has the parameters of the method that it records.

One function of any arguments would do for all methods, but a call of it pays for a tuple and a
dictionary of the arguments, for finding in them what is recorded, and for a call of each function
that does a part of this. So the source of a method is put together from the lines that it needs,
with its parameters by name. Methods with the same source share its code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from types import CodeType
from typing import Any, NamedTuple

from bsplib.record.events import (
    ANY_SOURCE,
    ANY_TAG,
    NOBODY,
    NUMBER,
    PROC_NULL,
    READ_AFTER_NS,
    STARTS,
)

_SOURCE = f"""
def make(base, number):
    def method({{parameters}}):
        call = begin(number, {{comm}})
        if call is None:
            return base({{arguments}})
        try:
            {{before}}
            call.enter = enter = clock()
            if enter - rows.last_reading > {READ_AFTER_NS}:
                read_before(call)
            result = base({{arguments}})
        except BaseException:
            {{moved}}
            failed(call)
            raise
        call.leave = leave = clock()
        if leave - call.enter > {READ_AFTER_NS}:
            read_after(call)
        {{moved}}
        {{after}}
        {{finish}}
        return result
    return method
"""
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<method>")
"""In the folder of the recorder, whose functions are not shown in stacks."""

_FINISH = "finish(call)"
_EXCHANGES = frozenset(("Sendrecv", "Sendrecv_replace"))
_ROOTED = ("gather", "gatherv", "scatter", "scatterv", "reduce")
_BY_SOME = "Create_group"
"""The maker that not all processes of the communicator call."""
_MOVED = ("call.bytes_out, call.bytes_in = moved",)
"""Objects travel as the bytes that mpi4py makes of them."""


class Lines(NamedTuple):
    """What a method does besides what all do."""

    before: tuple[str, ...] = ()
    """Before MPI is called: they say in ``call`` what is known then."""
    after: tuple[str, ...] = ()
    """After it has returned ``result``."""
    finish: str = _FINISH
    moves_objects: bool = False
    comm: str = "self.bsp_number"
    """The number of the communicator."""


def method(base: Any, call: str, lines: Lines, names: dict[str, Any]) -> Callable[..., Any]:
    """Return a function that records the calls of another.

    Args:
        base: the function.
        call: the name of the call in CALLS.
        lines: what is recorded of it.
        names: what the lines use, and ``rows``, ``begin``, ``clock``, ``read_before``,
            ``read_after``, ``finish``, ``failed``; those that move objects use ``moved``, too.
    """
    parameters = signature(base).parameters.values()
    scope: dict[str, Any] = {}
    exec(_code(tuple(each.name for each in parameters), lines), names, scope)
    made: Callable[..., Any] = scope["make"](base, NUMBER[call])
    defaults = tuple(each.default for each in parameters if each.default is not Parameter.empty)
    made.__defaults__ = defaults  # type: ignore[attr-defined]  # it is a function
    return named(made, base)


def named(made: Any, base: Any) -> Any:
    """Give a function the name and the docstring of another; return it."""
    made.__name__ = base.__name__
    made.__qualname__ = getattr(base, "__qualname__", base.__name__)
    made.__doc__ = base.__doc__
    return made


@cache
def _code(parameters: tuple[str, ...], lines: Lines) -> CodeType:
    """Return the code that makes the methods with these parameters and lines."""
    joined = ", ".join(parameters)
    moved = _MOVED if lines.moves_objects else ()
    parts = {
        "before": ("moved[0] = moved[1] = 0",) * lines.moves_objects + lines.before,
        "moved": moved,
        "after": lines.after,
        "finish": (lines.finish,),
    }
    texts = {name: _joined(name, part) for name, part in parts.items()}
    text = _SOURCE.format(parameters=joined, arguments=joined, comm=lines.comm, **texts)
    return compile(text, _FILE, "exec")


def _joined(name: str, lines: tuple[str, ...]) -> str:
    """Return lines for their place in the source of a method."""
    depth = 3 if name == "before" else 2
    return ("\n" + "    " * depth).join(lines) or "pass"


# -- what is recorded of each kind of call ---------------------------------------------------------


def of_message(name: str, base: Any) -> Lines:
    """Return the lines of a call that sends to one process, or receives from one."""
    parameters = tuple(signature(base).parameters)
    sends, objects = "dest" in parameters, name[0].islower()
    partner, tag = "dest" if sends else "source", "sendtag" if "sendtag" in parameters else "tag"
    before = [f"call.partner = codes.get({partner}, {partner})", f"call.tag = {tag}"]
    if sends and not objects:
        before += [
            f"if call.partner != {PROC_NULL}:",
            f"    call.bytes_out = {_volume(parameters[1])}",
        ]
    after, finish = _after_message(name.capitalize(), has_status="status" in parameters)
    if after and "status" in parameters:
        before += ["if status is None:", "    status = own_status"]
    return Lines(tuple(before), after, finish, moves_objects=objects)


def _after_message(call: str, *, has_status: bool) -> tuple[tuple[str, ...], str]:
    """Return the lines after a message, and what ends it."""
    if not has_status:
        return (_started(receives="recv" in call) if call[0] == "I" else ()), _FINISH
    if call in _EXCHANGES:
        return ("exchanged(call, status)",), _FINISH
    opened = (
        f"if call.partner == {ANY_SOURCE} or call.tag == {ANY_TAG}:",
        "    arrived(call, status)",
    )
    if call == "Probe":
        return opened, _FINISH
    if call == "Iprobe":
        return ("if result:", *(f"    {each}" for each in opened)), "finish_poll(call, found=result)"
    return ("call.bytes_in = status.Get_elements(byte)", *opened), _FINISH


def of_collective(name: str, base: Any) -> Lines:
    """Return the lines of a collective call."""
    parameters = tuple(signature(base).parameters)
    plain = name[1:] if name[0] == "I" else name.lower()
    before: tuple[str, ...] = ("call.partner = root",) if "root" in parameters else ()
    if name[0].islower():
        return Lines(before, moves_objects=True)
    if plain == "bcast":
        before += (
            "if root == self.rank:",
            f"    call.bytes_out = {_volume('buf')}",
            "else:",
            f"    call.bytes_in = {_volume('buf')}",
        )
    elif plain != "barrier":
        before += _both_buffers(plain)
    return Lines(before, _started(receives=False) if name[0] == "I" else ())


def _both_buffers(plain: str) -> tuple[str, ...]:
    """Return the lines for the buffers of a collective that sends and receives."""
    gathers, scatters = "gather" in plain, "scatter" in plain
    lines = [
        "if type(sendbuf) is ndarray and type(recvbuf) is ndarray:",
        "    call.bytes_out = sendbuf.nbytes",
        "    call.bytes_in = recvbuf.nbytes",
        "else:",
        f"    sizes(self, call, sendbuf, recvbuf, {gathers}, {gathers or scatters})",
    ]
    if plain in _ROOTED:
        nothing = "bytes_out" if plain.startswith("scatter") else "bytes_in"
        lines += ["if root != self.rank:", f"    call.{nothing} = 0"]
    if plain == "exscan":
        lines += ["if self.rank == 0:", "    call.bytes_in = 0"]
    return tuple(lines)


def of_maker(name: str) -> Lines:
    """Return the lines of a call that makes a communicator."""
    return Lines(after=(f"result = made(self, call, result, {name != _BY_SOME})",))


def of_request(name: str) -> Lines:
    """Return the lines of a call about one request."""
    before = ("if status is None:", "    status = own_status")
    before += ('call.object = getattr(self, "bsp_request", 0)',)
    after = "completed(call, self, status)"
    if name.lower() == "wait":
        return _of_requests(name, before, ("if call.object:", f"    {after}"), _FINISH)
    found = "result" if name[0] == "T" else "result[0]"
    after_test = (f"if {found} and call.object:", f"    {after}")
    return _of_requests(name, before, after_test, f"finish_poll(call, found={found})")


def of_requests(name: str) -> Lines:
    """Return the lines of a call about several requests."""
    which = name[len("wait") :]
    if which == "any":
        before = ("if status is None:", "    status = own_status")
        after = "found = any_completed(call, requests, status)"
    else:
        before = ("if statuses is None:", "    statuses = own_statuses(requests)")
        after = f"found = {which}_completed(call, requests, statuses)"
    if which == "some":
        indices = "result" if name[0].isupper() else "result[0]"
        after = f"found = some_completed(call, requests, statuses, {indices})"
    waits = name[0] in "Ww"
    return _of_requests(name, before, (after,), _FINISH if waits else "finish_poll(call, found=found)")


def _of_requests(
    name: str, before: tuple[str, ...], after: tuple[str, ...], finish: str
) -> Lines:
    return Lines(before, after, finish, moves_objects=name[0].islower(), comm=f"{NOBODY}")


def _volume(buffer: str) -> str:
    """Return the expression for the bytes of a buffer, most of which are arrays."""
    return f"{buffer}.nbytes if type({buffer}) is ndarray else volume({buffer})"


def _started(*, receives: bool) -> tuple[str, ...]:
    """Return the lines after a call that has started a request."""
    return (
        f"call.flags |= {STARTS}",
        "result = request(result)",
        "rows.last_number = call.object = result.bsp_request = rows.last_number + 1",
        f"result.bsp_receives = {receives}",
    )
