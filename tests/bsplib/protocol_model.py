"""A model of what backends/shm/PROTOCOL.md argues: two processes, shared words, all orders.

A process is a list of steps. The machine performs any step of any process next that it may:
a step may be performed before an earlier one of its process where the machine lets the two
swap. That is all that a store buffer does on x86 (a store becomes visible after a later
load is done), and what ARM does on top of it. ``explore`` tries every order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

X86, ARM = "x86", "arm"


class Step(NamedTuple):
    """One access to a word, or a fence."""

    kind: str
    """``store`` a value. ``await`` a word at a value or beyond. ``read`` a word, which has to
    have the value. ``look``: is a word at a value or beyond? ``wake`` a futex. ``sleep``:
    wait at a futex, and go back by as many steps as the value says. Fences: ``order``
    all but a store and a later load, ``full``, ``all``: full here and, at that moment, in the
    other process, too."""
    word: str = ""
    value: int = 0
    answer: str = ""
    """Name of what a ``look`` finds out."""
    if_not: str = ""
    """The step is left out if that answer is yes,"""
    if_so: str = ""
    """or if that one is no."""


Program = list[Step]
LOADS = ("await", "read", "look")
STRICT = ("full", "all", "wake", "sleep")
"""Fences and calls of the system: nothing is performed across them."""


class ModelError(Exception):
    """The protocol does not keep what it promises."""


class Process(NamedTuple):
    """How far a process is."""

    first: int = 0
    """All steps before this one have been performed or left out."""
    ahead: frozenset[int] = frozenset()
    """Steps after it of which this is true, too."""


State = tuple[frozenset[tuple[str, int]], tuple[Process, ...]]
"""The words that are not 0, and the processes."""


def may_swap(program: Program, early: int, late: int, machine: str) -> bool:
    """Tell whether the later of two steps may be performed before the earlier one."""
    one, other = program[early], program[late]
    if one.kind in STRICT or other.kind in STRICT or one.word == other.word:
        return False
    if one.answer and one.answer in (other.if_not, other.if_so):
        return False
    if one.kind == "store" and other.kind in LOADS:
        return True
    if machine == X86 or any(step.kind == "order" for step in program[early:late]):
        return False
    return not (one.kind == "await" and other.kind == "store")  # nothing is stored on suspicion


def candidates(program: Program, process: Process, machine: str) -> Iterator[int]:
    """Return the steps that the machine may try to perform next."""
    missing: list[int] = []
    for number in range(process.first, len(program)):
        if number in process.ahead or program[number].kind == "order":
            continue
        if all(may_swap(program, early, number, machine) for early in missing):
            yield number
        if program[number].kind in STRICT:
            return
        missing.append(number)


def perform(program: Program, state: State, pid: int, number: int) -> State | None:
    """Return the state after a step; None if it has to wait.

    Raises:
        ModelError: a process reads what it must not.
    """
    memory, processes = state
    step, process, words, done = program[number], processes[pid], dict(memory), {number}
    value = words.get(step.word, 0)
    if step.kind == "store":
        words[step.word] = step.value
    elif step.kind == "wake":
        words[step.word] = value + 1
    elif step.kind == "read":
        if value != step.value:
            raise ModelError(f"process {pid} reads {value} in {step}")
    elif step.kind == "look":
        done |= left_out(program, step.answer, answer=value >= step.value)
    elif step.kind == "sleep" and value:
        words[step.word] = value - 1
        process = process._replace(first=number - step.value)
        done = set()
    elif step.kind == "sleep" or (step.kind == "await" and value < step.value):
        return None
    elif step.kind == "all" and processes[1 - pid].ahead:
        return None  # the other one has performed some step before an earlier one
    moved = go_on(program, process, done)
    others = processes[:pid], processes[pid + 1 :]
    memory = frozenset((word, value) for word, value in words.items() if value)
    return memory, (*others[0], moved, *others[1])


def left_out(program: Program, name: str, *, answer: bool) -> set[int]:
    """Return the steps that are left out because of an answer.

    A ``look`` that is left out has the same answer as that.
    """
    condition = "if_not" if answer else "if_so"
    numbers = {number for number, step in enumerate(program) if getattr(step, condition) == name}
    further = (program[number].answer for number in numbers if program[number].answer)
    return numbers.union(*(left_out(program, each, answer=answer) for each in further))


def go_on(program: Program, process: Process, done: set[int]) -> Process:
    """Return how far a process is after it has performed or left out steps."""
    first, ahead = process.first, process.ahead | done
    while first in ahead or (first < len(program) and program[first].kind == "order"):
        first += 1
    return Process(first, frozenset(number for number in ahead if number > first))


def explore(programs: list[Program], machine: str) -> int:
    """Try all orders in which two programs can be performed; return the number of states.

    Raises:
        ModelError: a process reads what it must not, or waits for ever.
    """
    begin: State = frozenset(), tuple(Process() for _ in programs)
    seen, to_do = {begin}, [begin]
    while to_do:
        state = to_do.pop()
        following = {
            after
            for pid, program in enumerate(programs)
            for number in candidates(program, state[1][pid], machine)
            if (after := perform(program, state, pid, number)) is not None
        }
        for pid, (program, process) in enumerate(zip(programs, state[1], strict=True)):
            if not following and process.first < len(program):
                raise ModelError(f"process {pid} waits for ever in {program[process.first]}")
        to_do += following - seen
        seen |= following
    return len(seen)
