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
    COMPLETES,
    NOBODY,
    NOT_READ,
    NUMBER,
    PROC_NULL,
    READ_AFTER_NS,
    STARTS,
)
from bsplib.record.python_rows import READINGS_AT, ROW_BYTES, WRITE_AFTER_NS

_SOURCE = f"""
def make(base, number):
    def method({{parameters}}):
        if rows.busy or get_ident() != rows.thread:
            not_recorded()
            return base({{arguments}})
        stack = stack_number(2)
        flags = made = out = into = enter = 0
        cpu = cpu_leave = ready = ready_leave = {NOT_READ}
        {{before}}
        try:
            rows.busy = True
            try:
                enter = clock()
                if enter - rows.last_reading > {READ_AFTER_NS}:
                    cpu, ready, enter = read_before()
                result = base({{arguments}})
            except BaseException:
                {{moved}}
                failed(
                    (number, flags, {{comm}}, stack, {{partner}}, {{tag}}, made, out, into, enter),
                    cpu,
                    ready,
                )
                raise
            leave = clock()
            if leave - enter > {READ_AFTER_NS}:
                cpu_leave, ready_leave = read_after(leave)
            {{moved}}
            {{after}}
            if {{is_new}}:
                at = rows.at
                pack(
                    rows.events, at, number, flags, {{comm}}, stack, {{partner}}, {{tag}}, made,
                    out, into, enter, leave,
                )
                if cpu != {NOT_READ} or cpu_leave != {NOT_READ}:
                    at_end = at + {READINGS_AT}
                    pack_readings(rows.events, at_end, cpu, cpu_leave, ready, ready_leave)
                rows.at = at + {ROW_BYTES}
                rows.last_poll = {{poll}}
                if at == rows.last_at or leave - rows.last_write > {WRITE_AFTER_NS}:
                    write_at(leave)
        finally:
            rows.busy = False
        return result
    return method
"""
"""A method has all that is recorded in variables of its own: attributes would take longer.
``made`` is the object of the row."""
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<method>")
"""In the folder of the recorder, whose functions are not shown in stacks."""

_EXCHANGES = frozenset(("Sendrecv", "Sendrecv_replace"))
_ROOTED = ("gather", "gatherv", "scatter", "scatterv", "reduce")
_BY_SOME = "Create_group"
"""The maker that not all processes of the communicator call."""


class Lines(NamedTuple):
    """What a method does besides what all do."""

    before: tuple[str, ...] = ()
    """Before MPI is called: they say what is known then."""
    after: tuple[str, ...] = ()
    """After it has returned ``result``."""
    partner: str = f"{NOBODY}"
    tag: str = f"{ANY_TAG}"
    comm: str = "self.bsp_number"
    """The number of the communicator."""
    moves_objects: bool = False
    """Whether what travels is not a buffer, but the bytes that mpi4py makes of objects."""
    found: str = ""
    """An expression: whether a call that may find nothing has found something."""


def method(base: Any, call: str, lines: Lines, names: dict[str, Any]) -> Callable[..., Any]:
    """Return a function that records the calls of another.

    Args:
        base: the function.
        call: the name of the call in CALLS.
        lines: what is recorded of it.
        names: what the lines and the source of each method use.
    """
    parameters = signature(base).parameters.values()
    scope: dict[str, Any] = {}
    exec(_code(tuple(each.name for each in parameters), lines), names, scope)
    made = scope["make"](base, NUMBER[call])
    defaults = tuple(each.default for each in parameters if each.default is not Parameter.empty)
    made.__defaults__ = defaults
    return named(made, base)


def named(made: Any, base: Any) -> Callable[..., Any]:
    """Give a function the name and the docstring of another; return it."""
    made.__name__ = base.__name__
    made.__qualname__ = getattr(base, "__qualname__", base.__name__)
    made.__doc__ = base.__doc__
    function: Callable[..., Any] = made
    return function


@cache
def _code(parameters: tuple[str, ...], lines: Lines) -> CodeType:
    """Return the code that makes the methods with these parameters and lines."""
    joined = ", ".join(parameters)
    before = ("moved[0] = moved[1] = 0",) * lines.moves_objects + lines.before
    poll = f"(number, {lines.comm}, stack, made)"
    text = _SOURCE.format(
        parameters=joined,
        arguments=joined,
        comm=lines.comm,
        partner=lines.partner,
        tag=lines.tag,
        before=_joined(2, before),
        moved="out, into = moved" if lines.moves_objects else "pass",
        after=_joined(3, lines.after),
        is_new=f"{lines.found} or not continues({poll}, enter, leave)" if lines.found else "True",
        poll=f"None if {lines.found} else [{poll}, leave, at]" if lines.found else "None",
    )
    return compile(text, _FILE, "exec")


def _joined(depth: int, lines: tuple[str, ...]) -> str:
    """Return lines for a place in the source of a method."""
    return ("\n" + "    " * depth).join(lines) or "pass"


# -- what is recorded of each kind of call ---------------------------------------------------------


def of_message(name: str, base: Any) -> Lines:
    """Return the lines of a call that sends to one process, or receives from one."""
    parameters = tuple(signature(base).parameters)
    sends, objects = "dest" in parameters, name[0].islower()
    partner, tag = "dest" if sends else "source", "sendtag" if "sendtag" in parameters else "tag"
    before = [f"partner = codes.get({partner}, {partner})"]
    if sends and not objects:
        before += [f"if partner != {PROC_NULL}:", f"    out = {_volume(parameters[1])}"]
    call, found = name.capitalize(), ""
    after: tuple[str, ...] = ()
    if "status" in parameters:
        before += ["if status is None:", "    status = own_status"]
        after, found = _after_message(call, tag), "result" * (call == "Iprobe")
    elif call[0] == "I":
        after = _started(receives="recv" in call)
    return Lines(
        tuple(before), after, "partner", tag, moves_objects=objects and not found, found=found
    )


def _after_message(call: str, tag: str) -> tuple[str, ...]:
    """Return the lines after a message whose status is known."""
    what = "codes.get(source, source), status.Get_tag(), into"
    source, size = "source = status.Get_source()", "into = status.Get_elements(byte)"
    if call in _EXCHANGES:
        return size, source, f"add_exchange(partner, out, {what})"
    opened = (
        f"if partner == {ANY_SOURCE} or {tag} == {ANY_TAG}:",
        f"    {source}",
        f"    add_done(0, {what})",
    )
    if call == "Iprobe":
        return ("if result:", *(f"    {each}" for each in opened))
    return opened if call == "Probe" else (size, *opened)


def of_collective(name: str, base: Any) -> Lines:
    """Return the lines of a collective call."""
    parameters = tuple(signature(base).parameters)
    partner = "root" if "root" in parameters else f"{NOBODY}"
    if name[0].islower():
        return Lines(partner=partner, moves_objects=True)
    starts = name[0] == "I"
    plain = name[1:] if starts else name.lower()
    before: tuple[str, ...] = ()
    if plain == "bcast":
        size = _volume("buf")
        before = ("if root == self.rank:", f"    out = {size}", "else:", f"    into = {size}")
    elif plain != "barrier":
        before = _both_buffers(plain)
    return Lines(before, _started(receives=False) if starts else (), partner)


def _both_buffers(plain: str) -> tuple[str, ...]:
    """Return the lines for the buffers of a collective that sends and receives."""
    gathers, scatters = "gather" in plain, "scatter" in plain
    lines: tuple[str, ...] = (
        "if type(sendbuf) is ndarray and type(recvbuf) is ndarray:",
        "    out, into = sendbuf.nbytes, recvbuf.nbytes",
        "else:",
        f"    flags, out, into = sizes(self, sendbuf, recvbuf, {gathers}, {gathers or scatters})",
    )
    if plain in _ROOTED:
        lines += ("if root != self.rank:", "    out = 0" if scatters else "    into = 0")
    if plain == "exscan":
        lines += ("if self.rank == 0:", "    into = 0")
    return lines


def of_maker(name: str) -> Lines:
    """Return the lines of a call that makes a communicator."""
    return Lines(after=(f"result, flags = created(self, result, {name != _BY_SOME})",))


def of_request(name: str) -> Lines:
    """Return the lines of a call about one request."""
    before = ('made = getattr(self, "bsp_request", 0)',)
    found = {"Test": "result", "test": "result[0]"}.get(name, "")
    return _of_requests(name, "status", before, "(self,), (status,)", found)


def of_requests(name: str) -> Lines:
    """Return the lines of a call about several requests."""
    indices = "result[0]" if name[0].islower() else "result"
    status, done = {
        "all": ("statuses", "requests, statuses"),
        "any": ("status", "requests, repeat(status)"),
        "some": ("statuses", f"[requests[at] for at in {indices} or ()], statuses"),
    }[name[len("wait") :]]
    return _of_requests(name, status, (), done, "" if name[0] in "Ww" else "found")


def _of_requests(name: str, status: str, before: tuple[str, ...], done: str, found: str) -> Lines:
    """Return the lines of a call that completes requests.

    Args:
        name: the method.
        status: its parameter for what is told of them.
        before: lines before MPI is called.
        done: the requests that may be completed, and the status of each.
        found: whether one is, of a method that does not wait.
    """
    own = {"status": "own_status", "statuses": "own_statuses[len(requests)]"}[status]
    return Lines(
        (f"if {status} is None:", f"    {status} = {own}", *before),
        (f"found = completed({done})", "if found:", f"    flags = {COMPLETES}"),
        comm=f"{NOBODY}",
        moves_objects=name[0].islower(),
        found=found,
    )


def _volume(buffer: str) -> str:
    """Return the expression for the bytes of a buffer, most of which are arrays."""
    return f"{buffer}.nbytes if type({buffer}) is ndarray else volume({buffer})"


def _started(*, receives: bool) -> tuple[str, ...]:
    """Return the lines after a call that has started a request."""
    return (
        f"flags |= {STARTS}",
        "result = request(result)",
        "rows.last_number = made = result.bsp_request = rows.last_number + 1",
        f"result.bsp_receives = {receives}",
    )
