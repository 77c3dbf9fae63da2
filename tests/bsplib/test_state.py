"""The private state of a group stands in one place, and says what it is."""

from __future__ import annotations

import ast
import gc
import inspect
import textwrap
import weakref

import numpy as np
import pytest

import bsplib
from bsplib import Group
from bsplib.core import BUILD
from bsplib.core.calls import Calls
from bsplib.core.engine import Engine
from bsplib.core.observed import ObservedEngine
from bsplib.primitives.state import GroupState


def described():
    """Return the attributes that the state's ``__init__`` sets, with what it says of each."""
    (cls,) = ast.parse(textwrap.dedent(inspect.getsource(GroupState))).body
    (function,) = (part for part in cls.body if getattr(part, "name", "") == "__init__")
    words = {}
    for statement, following in zip(function.body, [*function.body[1:], None], strict=True):
        match statement:
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)])
                | ast.AnnAssign(target=ast.Attribute(attr=name))
            ):
                words[name] = following
            case ast.Expr(value=ast.Constant(value=str()) | ast.Call()):
                pass
            case _:
                pytest.fail(f"{ast.unparse(statement)} is no declaration")
    return words


@pytest.mark.parametrize("name", described())
def test_every_attribute_of_a_group_says_what_it_is(name):
    match described()[name]:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            assert text[0].isupper()
            assert text.rstrip().endswith(".")
        case _:
            pytest.fail(f"{name} has no line that says what it is")


def everything(bsp):
    before = sorted(vars(bsp))
    x = bsp.zeros(4)
    y = np.zeros(4)
    bsp.push_reg(y)
    bsp.set_tagsize(1)
    bsp.sync()
    right = (bsp.pid + 1) % bsp.nprocs
    bsp.put(right, 1.0, x, offset=1)
    bsp.hpput(right, np.ones(2), y[:2])
    bsp.get_at(right, [0, 1], x)
    bsp.send(right, None, b"1")
    bsp.sync()
    list(bsp.messages())
    bsp.send(right, None, b"2")
    bsp.oblsync(1)
    bsp.move()
    with bsp.partition([bsp.nprocs]) as sub:
        sub.allreduce(1)
    bsp.pop_reg(y)
    return before, sorted(vars(bsp)), sorted(vars(sub))


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("check", [False, True])
def test_no_primitive_adds_an_attribute(run, check):
    before, after, of_sub = run(everything, check=check)[0]
    assert before == after == of_sub
    assert {*before} <= {*described(), *(("_engine",) if BUILD == "python" else ())}


def test_a_group_has_an_engine_and_inherits_none():
    assert Group.__mro__ == (Group, GroupState, Calls, object)
    assert not issubclass(Group, Engine)


def kinds_of_engines(bsp):
    with bsp.partition([bsp.nprocs]) as sub:
        return type(bsp._engine), type(sub._engine)


@pytest.mark.procs(2)
@pytest.mark.real_processes
@pytest.mark.parametrize(("check", "records"), [(False, False), (True, False), (False, True)])
def test_an_engine_is_observed_only_where_somebody_observes_it(run, tmp_path, check, records):
    profile = tmp_path / "trace.bsp" if records else None
    expected = ObservedEngine if check or records else Engine
    kinds = run(kinds_of_engines, check=check, profile=profile)
    assert kinds == [(expected, expected)] * 2


def test_a_group_is_freed_with_its_arrays_as_soon_as_nobody_has_it():
    groups = []

    def main(bsp):
        bsp.zeros(8)
        bsp.sync()
        with bsp.partition([bsp.nprocs]) as sub:
            sub.put(0, np.ones(3), sub.zeros(3))
            sub.sync()
            groups.append(weakref.ref(sub))
        groups.append(weakref.ref(bsp))

    gc.disable()
    try:
        bsplib.run(main, nprocs=2, backend="sim")
        assert [group() for group in groups] == [None] * 4
    finally:
        gc.enable()
