"""Random programs about the forms of values: numbers of all magnitudes, dtypes, changes in place.

Between their supersteps groups are used after their lives, or by others; see :mod:`.lives`.
Every process draws the same program from a seed, keeps a model of the registered arrays of all
processes, and compares what comes with what the model says.
"""

from __future__ import annotations

import random
import warnings
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

import bsplib

from .lives import Lives

POWERS = (0, 1, 7, 8, 15, 31, 32, 52, 53, 62, 63, 64, 65, 100)
FIELDS = (["a", "b"], ["b", "a"], ["key", "weight"], ["a", "c"])
ARRAYS = {
    "floats": ("f8", (12,)),
    "table": ("f8", (4, 6)),
    "integers": ("i8", (3, 4)),
    "long": ("q", (8,)),
    "small": ("f4", (2, 3, 4)),
    "swapped": (">i8", (6,)),
    "truths": ("?", (6,)),
    "brain": (ml_dtypes.bfloat16, (6,)),
    "one": ("f8", (1,)),
}
SHAPES = {1: ((1,), (1, 1)), 6: ((6,), (2, 3), (3, 2)), 8: ((8,), (2, 2, 2), (4, 2))}
SHAPES |= {12: ((12,), (3, 4), (2, 2, 3)), 24: ((24,), (4, 6), (2, 3, 4), (2, 2, 2, 3))}
TURNED = {"f8": "i8", "i8": "f8", "q": "l", "f4": "i4", ">i8": "i8", "?": "u1"}
"""What a dtype is changed to in place, and back again."""
PLAIN_DTYPES = [
    *("?bBhHiIlLqQefdgFDG"),
    *(">f8", ">i8", ">i2", ">c8", "S3", "U2", "M8[D]", "M8[ns]", "m8[s]", "V3"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4),
]
COLLECTIVES = (
    *("allreduce", "reduce", "scan", "exscan"),
    *("broadcast", "allgather", "gather", "scatter", "alltoall"),
)


def main(bsp: bsplib.Group, seed: int, forks: bool = True) -> None:
    """Run the program of a seed; raise where anything is not as it should be.

    Args:
        bsp: the group.
        seed: of the program.
        forks: its processes may be forked.
    """
    Process(bsp, seed, forks).run()


def described(value: Any) -> Any:
    """Return all of a value that has to arrive."""
    if isinstance(value, np.ndarray | np.generic):
        dtype, metadata = value.dtype, value.dtype.metadata
        more = dtype.num, dtype.isnative, dict(metadata) if metadata else None
        # Some bytes of a long double have no meaning.
        content = value.tolist() if dtype.char in "gG" else value.tobytes()
        return type(value), str(dtype), *more, value.shape, content
    if isinstance(value, list | tuple):
        return [described(each) for each in value]
    return type(value), repr(value)


class Process:
    """One process of a program.

    Args:
        bsp: the group.
        seed: of the program.
        forks: it may be forked.
    """

    def __init__(self, bsp: bsplib.Group, seed: int, forks: bool) -> None:
        self.bsp = bsp
        self.draw = random.Random(seed)
        self.lives = Lives(bsp, self.draw, forks)
        self.fields = np.dtype([("a", "i4"), ("b", "f8")])
        """A dtype whose fields get other names."""
        self.last = self.number()
        self.names = self.draw.sample(list(ARRAYS), 4)
        self.arrays: dict[str, Any] = {}
        self.dtypes: dict[str, Any] = {}
        self.shadows: dict[str, Any] = {}
        """Arrays of the same shape and strides, with the number of each element."""
        self.models: dict[str, Any] = {}
        """By process, the elements of its array, one after the other."""

    def run(self) -> None:
        """Take all steps."""
        with warnings.catch_warnings(action="ignore"):  # numpy advises against some changes
            self._register()
            for _ in range(self.draw.randint(4, 10)):
                for _ in range(self.draw.randint(0, 2)):
                    self._change(self.draw.choice(self.names))
                self._superstep()
                for _ in range(self.draw.randint(1, 6)):
                    self._collective()
                if self.draw.random() < 0.4:
                    self.lives.happen()

    def _register(self) -> None:
        for name in self.names:
            kind, shape = ARRAYS[name]
            self.dtypes[name] = dtype = np.dtype(kind)
            if self.draw.random() < 0.5:
                array = self.bsp.zeros(shape, dtype)
            else:
                array = self.bsp.push_reg(np.zeros(shape, dtype))
            self.arrays[name] = array
            self.shadows[name] = np.arange(array.size).reshape(shape)
            self.models[name] = [np.zeros(array.size, dtype) for _ in range(self.bsp.nprocs)]
        self.bsp.sync()

    # -- changes in place -------------------------------------------------------------------------

    def _change(self, name: str) -> None:
        """Change the form of a registered array, on all processes."""
        array, shadow, what = self.arrays[name], self.shadows[name], self.draw.randint(0, 5)
        if what <= 2 and array.flags.c_contiguous:
            array.shape = shadow.shape = self.draw.choice(SHAPES[array.size])
        elif what == 3 and array.ndim == 2 and array.flags.c_contiguous:
            array.shape = shadow.shape = self.draw.choice([array.shape, array.shape[::-1]])
            array.strides = array.itemsize, array.itemsize * len(array)  # column by column
            shadow.strides = 8, 8 * len(array)
        elif what == 4 and self.dtypes[name].char in "dlqf?" and ARRAYS[name][0] in TURNED:
            kind = ARRAYS[name][0]
            turned = np.dtype(TURNED[kind])
            array.dtype = turned if array.dtype is self.dtypes[name] else self.dtypes[name]
        elif what == 5:
            array.flags.writeable = not array.flags.writeable
        names = self.draw.choice(FIELDS)
        if self.draw.random() < 0.5:
            self.fields.names = names

    # -- puts, gets and messages ------------------------------------------------------------------

    def _superstep(self) -> None:
        bsp, draw = self.bsp, self.draw
        every = range(bsp.nprocs)
        calls = {pid: [self._drawn_call() for _ in range(draw.randint(0, 5))] for pid in every}
        sent = {pid: [self._payload() for _ in range(draw.randint(0, 4))] for pid in every}
        kept = [draw.choice(FIELDS) if draw.random() < 0.5 else None for _ in range(4)]
        right, left = (bsp.pid + 1) % bsp.nprocs, (bsp.pid - 1) % bsp.nprocs
        got: list[Any] = []

        taken = [self._call(*call, got) for call in calls[bsp.pid]]
        for number, payload in enumerate(sent[bsp.pid]):
            bsp.send(right, payload, number if number % 2 else None)
        wanted = [described(payload) for payload in sent[left]]
        bsp.sync()
        for expected, came in got:
            assert described(came) == described(expected)
        came = [payload for _, _, payload in bsp.messages()]
        for payload, what in zip(came, wanted, strict=True):
            assert described(payload) == what
        for payload, names in zip(came, kept, strict=False):
            if names and isinstance(payload, np.ndarray) and payload.dtype.names:
                payload.dtype.names = names
        accepted = bsp.allgather(taken)
        for pid in every:
            for (what, name, index, to, values), is_taken in zip(
                calls[pid], accepted[pid], strict=True
            ):
                if what != "get" and is_taken:
                    where = self._named(what, name, index)
                    self.models[name][to][where] = np.broadcast_to(values, where.shape)
        for name in self.names:
            mine = self._elements(name)
            assert mine.tobytes() == self.models[name][bsp.pid].tobytes(), (name, mine)

    def _elements(self, name: str) -> Any:
        """Return the elements of an array as it was registered."""
        array, order = self.arrays[name], np.argsort(self.shadows[name].reshape(-1))
        view = array.view(self.dtypes[name]) if array.dtype.kind != "V" else array
        return view.reshape(-1)[order]

    def _drawn_call(self) -> tuple[str, str, Any, int, Any]:
        """Draw a put or get: what, the array, index or offset, the other process, values."""
        draw, name = self.draw, self.draw.choice(self.names)
        what = draw.choice(["whole", "view", "view", "offset", "number", "list", "at", "get"])
        shadow, dtype, index = self.shadows[name], self.dtypes[name], None
        if what in ("offset", "number", "list"):
            index = draw.randint(0, shadow.size - 1)
        elif what == "at":
            index = draw.randint(0, ARRAYS[name][1][0] - 1)
        elif what in ("view", "get"):
            index = tuple(self._part(length) for length in shadow.shape)
        where = self._named(what, name, index)
        numbers = [self.draw.randint(0, 1 if dtype.kind == "b" else 9) for _ in range(where.size)]
        values: Any = np.array(numbers).reshape(where.shape).astype(self._given(dtype))
        if what in ("number", "list") and dtype.kind != "V":
            given = [{"f": float, "b": bool}.get(dtype.kind, int)(each) for each in numbers]
            values = given[0] if what == "number" else given
        elif what in ("whole", "view") and draw.random() < 0.2:
            values = values[..., :1]  # they are repeated
        return what, name, index, draw.randrange(self.bsp.nprocs), values

    def _given(self, dtype: Any) -> Any:
        """Draw the dtype of values: that of the array, another object, or one that is cast."""
        if dtype.kind not in "if":
            return dtype
        return self.draw.choice(
            [dtype, dtype, dtype.newbyteorder(), f"{dtype.kind}4", "q"][: 5 - (dtype.kind == "f")]
        )

    def _part(self, length: int) -> slice:
        low = self.draw.randint(0, length - 1)
        high = self.draw.randint(low + 1, length)
        step = self.draw.choice([1, 1, 2, -1])
        return slice(high - 1, low - 1 if low else None, -1) if step < 0 else slice(low, high, step)

    def _named(self, what: str, name: str, index: Any) -> Any:
        """Return the numbers of the elements that a call names."""
        shadow, shape = self.shadows[name], ARRAYS[name][1]
        if what == "whole":
            return shadow.copy()
        if what == "at":
            return np.atleast_1d(np.arange(shadow.size).reshape(shape)[index : index + 1])
        if what == "list":
            return np.arange(index, min(index + 3, shadow.size))
        if what in ("offset", "number"):
            return np.arange(index, index + 1)
        return shadow[index]

    def _call(self, what: str, name: str, index: Any, to: int, values: Any, got: list[Any]) -> bool:
        """Call put or get; return whether it was taken, which depends on the form of the array."""
        bsp, array = self.bsp, self.arrays[name]
        is_changed = array.dtype != self.dtypes[name]
        place = array[index] if what in ("view", "get") else array
        try:
            if what == "get":
                expected = self.models[name][to][self._named(what, name, index)]
                got.append((expected, bsp.get(to, place)))
            elif what in ("offset", "number", "list"):
                bsp.put(to, values, place, offset=index)
            elif what == "at":
                bsp.put(to, values, place, at=slice(index, index + 1))
            else:
                bsp.put(to, values, place)
        except bsplib.PlaceError:
            assert what in ("whole", "view", "get"), what
            return False
        assert not (is_changed and what in ("whole", "view", "get")), "it has another dtype now"
        return True

    # -- numbers and other values -----------------------------------------------------------------

    def number(self) -> Any:
        """Draw a number of Python's, of any magnitude."""
        draw = self.draw
        what = draw.randint(0, 9)
        near = draw.choice((-1, 1)) * ((1 << draw.choice(POWERS)) + draw.randint(-1, 1))
        if what <= 6:
            return near
        return [True, False, float(draw.randint(-9, 9)) / 2, 1.5 + 2j][what - 6 if what < 9 else 3]

    def numpys(self) -> Any:
        """Draw a number of numpy's."""
        kinds = (np.float64, np.float64, np.int64, np.float32, np.int16, np.uint64, np.longlong)
        if self.draw.random() < 0.2:
            return self.draw.choice([np.True_, np.False_, np.complex128(1 + 1j)])
        return self.draw.choice(kinds)(self.draw.randint(0, 100))

    def _payload(self) -> Any:
        """Draw what a message has."""
        draw = self.draw
        what = draw.randint(0, 7)
        if what == 0:
            return self.number()
        if what == 1:
            return self.numpys()
        shape = draw.choice([(), (1,), (3,), (2, 2), (1, 3), (0,), (300,)])
        if what == 2:
            self.fields.names = draw.choice(FIELDS)
            # The dtype of what is sent may be changed before the next message.
            return np.zeros(
                shape, np.dtype([(name, self.fields[name]) for name in self.fields.names])
            )
        if what == 3:
            return np.zeros(shape, np.dtype("f8", metadata={"unit": draw.choice("ms")}))
        kind = draw.choice([*PLAIN_DTYPES, "f8", "i8"])
        return (
            np.array([draw.randint(0, 1) for _ in range(int(np.prod(shape)))])
            .astype(np.int8)
            .reshape(shape)
            .astype(np.dtype(kind))
            if np.dtype(kind).kind != "V"
            else np.zeros(shape, kind)
        )

    def _value(self, kind: str) -> Any:
        if kind == "Python's":
            return self.number()
        if kind == "exact":
            return self.draw.choice([Fraction(1, 3), True, 1 << 62, -(1 << 63), 1 << 63, 5])
        if kind == "numpy's":
            return self.draw.choice([np.float64, np.float64, np.int64, float])(
                self.draw.randint(0, 9)
            )
        if kind == "truths":
            return np.array([self.draw.random() < 0.5 for _ in range(4)])
        if kind == "arrays":
            numbers = np.array([self.draw.randint(0, 9) for _ in range(4)])
            return numbers.astype(self.draw.choice(["f8", "i8", "?", ">f8", "i2", "q"]))
        return self._payload()

    def _collective(self) -> None:
        bsp, draw = self.bsp, self.draw
        name = draw.choice(COLLECTIVES)
        combines = name in COLLECTIVES[:4]
        kinds = ["Python's", "Python's", "exact", "numpy's", "truths", "arrays"]
        kind = draw.choice(kinds if combines else [*kinds, "payload", "payload"])
        values = [self._value(kind) for _ in range(bsp.nprocs)]
        if draw.random() < 0.2:
            values = values[:1] * bsp.nprocs
        wanted = [described(each) for each in values]
        root, mine, names = draw.randrange(bsp.nprocs), values[bsp.pid], draw.choice(FIELDS)
        if combines:
            found = getattr(bsp, name)(mine, np.add)
            first, stop = {"scan": (0, bsp.pid + 1), "exscan": (0, bsp.pid)}.get(
                name, (0, bsp.nprocs)
            )
            if name == "reduce" and bsp.pid:
                assert found is None
            elif first < stop:
                self._check_sum(found, values[first:stop])
            return
        if name == "broadcast":
            found, right = bsp.broadcast(mine, root), wanted[root]
        elif name == "allgather":
            found, right = bsp.allgather(mine), wanted
        elif name == "gather":
            found, right = bsp.gather(mine, root), wanted if bsp.pid == root else described(None)
        elif name == "scatter":
            found, right = bsp.scatter(values, root), wanted[bsp.pid]
        else:
            found, right = bsp.alltoall(values), [wanted[bsp.pid]] * bsp.nprocs
        assert described(found) == right, name
        if isinstance(found, np.ndarray) and found.dtype.names:
            found.dtype.names = names

    def _check_sum(self, found: Any, values: list[Any]) -> None:
        """Compare a sum, which is exact but for floats beside great integers."""
        if isinstance(values[0], np.ndarray):
            total = np.sum([value.astype("f8") for value in values], 0)
            assert found.tolist() == total.tolist(), (found, values)
            assert found.dtype.kind != "b"
            return
        total = sum(values)
        if any(isinstance(each, float | complex) for each in values):
            rounded = 1e-9 * (1 + max(abs(complex(each)) for each in values))
            assert np.isclose(complex(found), complex(total), atol=rounded), (found, values)
            assert type(found) is type(total), (found, values)
        else:
            assert (type(found), found) == (type(total), total), (found, values)
