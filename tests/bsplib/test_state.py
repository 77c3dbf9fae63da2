"""The private state of a group stands in one place, and says what it is."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

from bsplib import Group
from bsplib.core import BUILD
from bsplib.core.box import Box
from bsplib.core.meeting import Meeting
from bsplib.core.quick_state import QuickState
from bsplib.core.values import Values
from bsplib.primitives.state import GroupState


def described():
    """Return the attributes that the state's ``__init__`` sets, with what it says of each.

    It calls methods that set the others.
    """
    (cls,) = ast.parse(textwrap.dedent(inspect.getsource(GroupState))).body
    words = {}
    for part in cls.body:
        match part:
            case ast.FunctionDef(name=name) if name == "__init__" or name.startswith("_declare_"):
                words |= declared_in(part)
    return words


def declared_in(function):
    """Return the attributes that one of these methods sets, with what it says of each."""
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
    core = Values(0, 1, Meeting(), Box(0, 1, int))
    core._declare_values()
    assert {*before} <= {*described(), *(vars(core) if BUILD == "python" else ())}


def test_no_class_above_the_state_has_an_init_of_its_own():
    owners = [kind for kind in Group.__mro__ if "__init__" in vars(kind)]
    assert owners == [GroupState, QuickState, object]
