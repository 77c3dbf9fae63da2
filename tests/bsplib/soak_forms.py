"""Random programs about forms of values and lives of groups, and mutants that they have to find.

``python -m tests.bsplib.soak_forms`` runs the programs of :mod:`.random_programs.forms` in the mode
of :mod:`.compared`; with ``--mutants`` it runs each mutant until a program finds it: each leaves
one thing out of a form, or (:mod:`.token_mutants`) one check out of the token of life.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import click
import numpy as np

import bsplib
from bsplib.core import BUILD, atomics, engine, forms, known_arrays, values
from bsplib.primitives import mailbox
from bsplib.transfers import operations, registry

from . import token_mutants
from .compared import comparing
from .random_programs.forms import main
from .random_programs.lives import in_child

COUNTS = (1, 2, 3, 2, 4)
MOST_S = 100
"""A mutant that takes longer for a program has been found."""


def run(seed: int, backend: str) -> None:
    """Run the program of a seed; every fourth time in a pool, which another process may not use."""
    more: dict[str, Any] = {"sim_seed": seed} if backend == "sim" else {}
    nprocs = COUNTS[seed % len(COUNTS)]
    if seed % 4 != 3:
        bsplib.run(main, seed, nprocs=nprocs, backend=backend, **more)
        return
    with bsplib.Pool(nprocs, backend=backend) as pool:
        for number in range(2):
            pool.run(main, 1000 * number + seed)
            said = in_child(lambda: pool.run(main, seed))
            assert said.startswith("UsageError: this pool belongs to the process that made"), said


def _form(of: Callable[[Any], int]) -> list[Any]:
    return [mock.patch.object(each, "form_of", of) for each in (engine, values, mailbox)]


def _same_form(tell: Callable[[Any, Any], bool]) -> list[Any]:
    return [mock.patch.object(each, "same_form", tell) for each in (engine, registry)]


def _codes(encode: Callable[[Any], Any]) -> list[Any]:
    return [mock.patch.object(each, "encode_dtype", encode) for each in (forms, registry)]


_remembered: dict[Any, Any] = {}


def _decoded(code: Any) -> Any:
    return _remembered.setdefault(code, _DECODE(code))


def _without_bytes(dtype: Any) -> Any:
    return dtype.str if dtype.names is None else _ENCODE(dtype)


def _alike(one: Any, other: Any) -> bool:
    return one.shape == other.shape and one.dtype is other.dtype


_FORM, _ENCODE, _DECODE = atomics.form_of, forms.encode_dtype, forms.decode_dtype
_FITS = atomics.fits

MUTANTS: dict[str, list[Any]] = {
    "the form of an array without its type number": _form(lambda a: a.itemsize if _FORM(a) else 0),
    "the form of an array without its byte order": _form(lambda a: _FORM(a) & 31),
    "the form of an array without metadata": _form(
        lambda a: a.dtype.num + 1 + 32 * (not a.dtype.isnative) if a.dtype.kind in "biufc" else 0
    ),
    "the form of an array with those of others": _form(
        lambda a: 0 if a.dtype.hasobject else 1 + a.dtype.num % 30
    ),
    "a form without the strides": _same_form(_alike),
    "a form without the shape": _same_form(lambda one, other: one.dtype is other.dtype),
    "a form without the dtype": _same_form(
        lambda one, other: one.shape == other.shape and one.strides == other.strides
    ),
    "every form is the same": _same_form(lambda *_: True),
    "the code of a dtype without its type number": _codes(
        lambda dtype: (
            dtype.str if dtype.kind in "biufc" and dtype.metadata is None else _ENCODE(dtype)
        )
    ),
    "the code of a dtype without the dtypes of others": _codes(_without_bytes),
    "the code of a dtype without metadata": _codes(
        lambda dtype: _ENCODE(np.dtype(dtype.str) if dtype.kind in "biufc" else dtype)
    ),
    "decoded dtypes are handed out again": [
        mock.patch.object(each, "decode_dtype", _decoded)
        for each in (forms, values, sys.modules["bsplib.transfers.messages"])
    ],
    "integers of any size are 64 bits long": [
        mock.patch.object(
            values, "fits", lambda kind, x: _FITS(kind, x) or (type(x) is int and abs(x) >> 64 == 0)
        ),
        mock.patch.object(
            values,
            "write_number",
            lambda at, kind, x: atomics.write_number(
                at, kind, x - (x >> 63 << 64) if kind == 2 else x
            ),
        ),
    ],
    "the head of an int is that of a float": [
        mock.patch.object(values, "_FORM_OF_INTEGER", values._FORM_OF_FLOAT)
    ],
    "the head of numpy's float is that of Python's": [
        mock.patch.object(values, "_FORM_OF_NUMPYS", values._FORM_OF_FLOAT)
    ],
    "a head of an array without its shape": [
        mock.patch.object(values, "form_of_array", lambda _, dtype: ("array", (1,), _ENCODE(dtype)))
    ],
    "truth values are added as such": [mock.patch.object(operations, "counted", lambda x: x)],
    "arrays of truth values are added as such": [
        mock.patch.object(values, "is_boolean", return_value=False)
    ],
    "the size of registered arrays is not compared": [
        mock.patch.object(engine, "same_shape", return_value=True)
    ],
    "dtypes of values are not compared": [
        mock.patch.object(each, "is_of", return_value=True) for each in (engine, known_arrays)
    ],
    "a registration has the array of the program": [
        mock.patch.object(
            registry.Registration, "__init__", lambda self, *given: _keep(self, given)
        )
    ],
}
"""What they leave out. The names of functions are looked up anew in the interpreted core only."""

_INIT = registry.Registration.__init__


def _keep(registration: Any, given: Any) -> None:
    _INIT(registration, *given)
    registration.array = registration.handle if given[1] is not None else None


@contextmanager
def _patched(name: str) -> Iterator[None]:
    _remembered.clear()
    with ExitStack() as stack:
        for each in MUTANTS[name]:
            stack.enter_context(each)
        yield


def mutants() -> dict[str, Any]:
    """Return all of them, as contexts, by their names."""
    return {name: _patched(name) for name in MUTANTS} | {
        f"{place.line}: {place}": token_mutants.left_out(place) for place in token_mutants.places()
    }


def _too_late(*_: Any) -> None:
    raise TimeoutError


def programs_until_found(mutant: Any, most: int) -> int | None:
    """Return how many programs it takes to find a mutant; None where none of them does.

    They run in turns on virtual processors and on real processes, whose engines are not the same.
    """
    signal.signal(signal.SIGALRM, _too_late)
    with mutant:
        for seed in range(most):
            signal.alarm(MOST_S)
            try:
                run(seed, ("sim", "shm")[seed % 2])
            except Exception:  # noqa: BLE001  # whatever it is, it is found
                return seed + 1
            finally:
                signal.alarm(0)
        return None


def find_mutants(most: int, only: str) -> int:
    """Say how many programs it takes to find each mutant; return how many are not found.

    Args:
        most: programs for each of them.
        only: a part of its name.
    """
    missed = 0
    for name, mutant in mutants().items():
        if only not in name:
            continue
        count = programs_until_found(mutant, most)
        missed += count is None
        click.echo(f"{name}: {count or 'not found'}")
    return missed


def run_all(first: int, programs: int, backend: str) -> int:
    """Run the programs of some seeds; return how many were wrong."""
    wrong = 0
    for seed in range(first, first + programs):
        try:
            run(seed, backend)
        except Exception as error:  # noqa: BLE001  # whatever it is, it counts
            wrong += 1
            click.echo(f"seed {seed}: {error!r:.500}")
    return wrong


@click.command()
@click.option("--programs", default=200, show_default=True, help="Programs, or most for a mutant.")
@click.option("--first", default=0, show_default=True, help="Seed of the first.")
@click.option("--backend", default="sim", show_default=True)
@click.option("--mutants", is_flag=True, help="Run the mutants; needs BSPLIB_CORE=python.")
@click.option("--only", default="", help="Only mutants with this in their names.")
def command(programs: int, first: int, backend: str, mutants: bool, only: str) -> None:
    """Run random programs, or say how many it takes to find each mutant."""
    if mutants and BUILD != "python":
        raise click.UsageError("mutants need the interpreted core: set BSPLIB_CORE=python")
    with comparing():
        missed = find_mutants(programs, only) if mutants else run_all(first, programs, backend)
    click.echo(f"{missed} {'mutants were not found' if mutants else 'programs were wrong'}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    command()
