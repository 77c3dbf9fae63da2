from __future__ import annotations

import inspect
import pickle
import re

import pytest

import bsplib
from bsplib import errors

CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, bsplib.BspError)
]


def drawn_tree():
    """Class -> parent, as the docstring draws it."""
    tree, path = {}, []
    for line in errors.__doc__.splitlines():
        found = re.match(r"    ([│├└─ ]*)(\w+Error)\b", line)
        if found:
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            tree[found[2]] = path[depth - 1] if depth else None
    return tree


def test_the_tree_in_the_docstring_is_that_of_the_classes():
    tree = {
        cls.__name__: cls.__bases__[0].__name__ if cls is not bsplib.BspError else None
        for cls in CLASSES
    }
    assert drawn_tree() == tree


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_survives_pickling_with_its_attributes(cls):
    error = cls("put: 3 of 8 elements")
    error.pid, error.superstep = 3, 7
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert (str(again), again.args) == ("put: 3 of 8 elements", ("put: 3 of 8 elements",))
    assert (again.pid, again.superstep, again.__notes__) == (3, 7, ["a note"])


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_knows_no_process_until_it_is_told(cls):
    assert (cls("text").pid, cls("text").superstep) == (None, None)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (bsplib.ArgumentError, TypeError),
        (bsplib.ProcessRangeError, IndexError),
        (bsplib.RegistrationError, LookupError),
        (bsplib.PlaceError, TypeError),
        (bsplib.BoundsError, IndexError),
        (bsplib.DtypeError, TypeError),
        (bsplib.MessageError, ValueError),
        (bsplib.PartitionError, ValueError),
        (bsplib.PendingTransferError, RuntimeError),
        (bsplib.RunTimeoutError, TimeoutError),
        (bsplib.OutOfSharedMemoryError, MemoryError),
        (bsplib.TraceError, ValueError),
    ],
)
def test_errors_are_caught_by_the_builtin_that_they_resemble(cls, builtin):
    assert issubclass(cls, builtin)
    assert issubclass(cls, bsplib.BspError)


HOOKS = {"load_ipython_extension", "unload_ipython_extension"}
"""What IPython calls."""
OWN = {"TYPE_CHECKING", "import_module"}
"""What the package uses itself, to import its names when they are used first."""


def test_all_is_what_is_visible():
    visible = {
        name
        for name in dir(bsplib)
        if not name.startswith("_") and not inspect.ismodule(getattr(bsplib, name))
    } - (HOOKS | OWN)
    assert visible | {"__version__"} == set(bsplib.__all__)
    assert len(visible) + 1 == len(bsplib.__all__)
    assert errors.__all__ == sorted(errors.__all__)


# -- what an error says -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda bsp: bsp.put(-1, 0, bsp.zeros(1)), "put: "),
        (lambda bsp: bsp.get(-1, bsp.zeros(1)), "get: "),
        (lambda bsp: bsp.send(-1, 0), "send: "),
        (lambda bsp: bsp.move(), "move: "),
        (lambda bsp: bsp.partition([]), "partition: "),
        (lambda bsp: bsp.push_reg(1), "push_reg: "),
        (lambda bsp: bsp.pop_reg(1), "pop_reg: "),
        (lambda bsp: bsp.set_tagsize(-1), "set_tagsize: "),
        (lambda bsp: bsp.zeros(1, object), "zeros: "),
        (lambda bsp: bsp.done(), "done: this group is the whole run"),
    ],
)
@pytest.mark.procs(2)
def test_the_place_is_the_line_of_the_program_that_called(run, call, words):
    line = inspect.getsourcelines(call)[1]
    with pytest.raises(
        bsplib.UsageError,
        match=rf"^{words}.* \[process 0, superstep 0, test_errors.py:{line}\](\n|$)",
    ):
        run(call)


@pytest.mark.procs(2)
def test_the_superstep_in_a_sub_group_is_that_of_the_sub_group(run):
    def main(bsp):
        bsp.sync()
        with bsp.partition([2]) as sub:
            for _ in range(3):
                sub.sync()
            sub.move()

    with pytest.raises(bsplib.MessageError, match=r"\[process 0, superstep 3, ") as raised:
        run(main)
    assert raised.value.superstep == 1  # that of the run, by which errors are ranked
