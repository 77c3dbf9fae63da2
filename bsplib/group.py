"""A group of processes as one of them sees it: all that a program calls.

A :class:`Group` has an engine, which collects the transfers of a superstep and delivers them at its
end. What a program calls are methods of the group:

====================================== =====================================================
what a program calls                   where it begins
====================================== =====================================================
put, hpput, get, hpget, put_at,        calls.py in core/: goes on to the engine, which hands
get_at, send, messages, move, hpmove,  what it declines to functions of remote.py, mailbox.py
sync, oblsync                          and oblivious.py in primitives/
pid, nprocs, machine                   state.py in primitives/: all private attributes, errors
push_reg, pop_reg, zeros, zeros_like,  arrays.py in primitives/
full, empty, array, scope
on                                     remote.py in primitives/
qsize, get_tag, set_tagsize            mailbox.py in primitives/
broadcast, gather, allgather, scatter, exchanges.py in primitives/
alltoall
reduce, allreduce, scan, exscan        combinations.py in primitives/
partition, split, done                 subgroups.py in primitives/
time, rng, charge, experiment, abort   this file
====================================== =====================================================

The modules of primitives/ have functions whose first argument is the group. The group has the
following parts; none of them knows the group, so that its arrays are freed with it:

``_engine``
    :class:`~bsplib.core.engine.Engine`: the records of transfers, and their delivery. Where a run
    is recorded or checked, it tells observers of calls, meetings and deliveries:
    :class:`~bsplib.core.observed.RecordingObserver` and
    :class:`~bsplib.transfers.checker.Checking`.
``_values``
    :class:`~bsplib.core.values.Values`: sends and takes the values of collectives.
``_supersteps``
    :class:`~bsplib.primitives.superstep.Supersteps`: what the engine leaves to others at the end
    of a superstep.
``_registry``, ``_watch``
    The registered arrays, and what ``check=True`` knows of the superstep.
``_port``
    The connection to the other processes, which the backend has made.

All argument checks stand in these files, once for every backend: the layers below are
given plain values that have been checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import (
    TYPE_CHECKING,
    Any,
    NoReturn,
    Self,
    SupportsFloat,
    SupportsIndex,
    TypeVar,
    overload,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib import call_site
from bsplib.errors import AbortError, ArgumentError, UsageError
from bsplib.experiments.blocks import OFF, ExperimentBlock, check, values_of
from bsplib.primitives import (
    arrays,
    collective_mail,
    combinations,
    exchanges,
    mailbox,
    oblivious,
    other_names,
    remote,
    subgroups,
)
from bsplib.primitives.state import GroupState

_Scalar = TypeVar("_Scalar", bound=np.generic)
_Destination = TypeVar("_Destination", bound=NDArray[Any])


def _is_time(seconds: object) -> bool:
    try:
        return 0 <= seconds < math.inf  # type: ignore[operator]  # any object may come here
    except TypeError:
        return False


class Group(GroupState):
    """The group of processes that a program runs in, as process ``pid`` sees it.

    ``main`` is given the whole run as a group; :meth:`partition` and :meth:`split` make
    sub-groups. Its attributes ``pid``, ``nprocs`` and ``machine`` can be read only.

    Every primitive raises :class:`~bsplib.errors.PartitionError` where the group cannot
    be used: a sub-group of it is open, it has been left, an exception has left a sync or
    a collective of it, or its run has ended. A group belongs to the process and the thread
    that run ``main``: so do they in a process that is forked there; in another thread they
    raise :class:`~bsplib.errors.UsageError`.
    """

    if TYPE_CHECKING:  # the signatures that the core compiles say less, and have the docstrings

        @overload
        def get(
            self,
            pid: SupportsIndex,
            src: NDArray[Any],
            dst: _Destination,
            *,
            offset: SupportsIndex | None = None,
            at: Any = None,
            count: None = None,
        ) -> _Destination: ...
        @overload
        def get(
            self,
            pid: SupportsIndex,
            src: NDArray[_Scalar],
            dst: None = None,
            *,
            offset: SupportsIndex | None = None,
            at: Any = None,
            count: SupportsIndex | None = None,
        ) -> NDArray[_Scalar]: ...
        def get(
            self,
            pid: SupportsIndex,
            src: NDArray[Any],
            dst: Any = None,
            *,
            offset: SupportsIndex | None = None,
            at: Any = None,
            count: SupportsIndex | None = None,
        ) -> Any: ...
        def put(
            self,
            pid: SupportsIndex,
            src: ArrayLike,
            dst: NDArray[Any],
            *,
            offset: SupportsIndex | None = None,
            at: Any = None,
        ) -> None: ...
        def hpput(
            self,
            pid: SupportsIndex,
            src: ArrayLike,
            dst: NDArray[Any],
            *,
            offset: SupportsIndex | None = None,
            at: Any = None,
        ) -> None: ...
        def send(self, pid: SupportsIndex, payload: Any, tag: Any = None) -> None: ...
        def messages(self) -> Iterator[tuple[int, Any, Any]]: ...

    # -- registered arrays --------------------------------------------------------------

    push_reg = arrays.push_reg
    pop_reg = arrays.pop_reg
    zeros = arrays.zeros
    zeros_like = arrays.zeros_like
    full = arrays.full
    empty = arrays.empty
    array = arrays.array
    scope = arrays.scope
    on = remote.on

    # -- what the engine declines, with every check there is ------------------------------

    _put = remote.put_slowly
    _get = remote.get_slowly
    _put_at = remote.put_at
    _get_at = remote.get_at
    _send = mailbox.send_slowly
    _move = mailbox.move
    _hpmove = mailbox.hpmove
    _decode = mailbox.decode
    _check_oblsync = oblivious.check_oblsync
    _oblsync = oblivious.oblsync
    _check_call = collective_mail.check_call
    _send_value = collective_mail.send_value
    _give = collective_mail.give
    _take = collective_mail.take
    _own_value = combinations.own_value
    _wire = combinations.wire

    # -- messages, beside what the engine does ------------------------------------------

    qsize = mailbox.qsize
    get_tag = mailbox.get_tag
    set_tagsize = mailbox.set_tagsize

    # -- collectives --------------------------------------------------------------------

    broadcast = exchanges.broadcast
    gather = exchanges.gather
    allgather = exchanges.allgather
    scatter = exchanges.scatter
    alltoall = exchanges.alltoall
    reduce = combinations.reduce
    allreduce = combinations.allreduce
    scan = combinations.scan
    exscan = combinations.exscan

    # -- sub-groups ---------------------------------------------------------------------

    partition = subgroups.partition
    split = subgroups.split
    done = subgroups.done

    def __enter__(self) -> Self:
        subgroups.open_again(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.done()
        else:
            subgroups.abandon(self)

    # -- enquiry ----------------------------------------------------------------------

    if not TYPE_CHECKING:  # a checker of types knows all attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Say what an attribute of another library is called here."""
            known = other_names.here(name, Group)
            hint = f"; it is called {known} here" if known else ""
            text = f"a group has no attribute {name!r}{hint}"
            raise AttributeError(text, name=name, obj=self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a group belongs to one process of one run")

    def __repr__(self) -> str:
        return f"<Group {self._pid} of {self._nprocs}, superstep {self._engine.superstep}>"

    def time(self) -> float:
        """Return the seconds since the run began: since the barrier before ``main``.

        Raises:
            PartitionError: the run has ended.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_time.
        """
        self._check_not_over()
        clock = self._port.clock
        if clock is not None:
            clock.settle()
        return (self._port.now() - self._terms.began_ns) * 1e-9

    def rng(self, seed: int | Sequence[int] | None = None) -> np.random.Generator:
        """Return a random generator of this process.

        Generators of different processes give independent streams. With one seed a
        process gets the same stream again, in every run and on every backend.

        Args:
            seed: what ``numpy.random.SeedSequence`` takes; a stream that is different
                each time if None.

        Raises:
            UsageError: ``seed`` is no seed.

        Cost: nothing.
        """
        process = self._port.members[self.pid]
        try:
            sequence = np.random.SeedSequence(seed, spawn_key=(process,))
        except (TypeError, ValueError) as error:
            raise self._error(
                UsageError, f"rng: seed is {seed!r}; it is an integer of 0 or more ({error})"
            ) from None
        return np.random.default_rng(sequence)

    def charge(self, seconds: float) -> None:
        """Advance this process's clock by computation, on virtual processors.

        From the first call on the clock of the process advances by charges alone (and
        by what communication costs). What was measured before stays; only less than
        1 ms before a first call in the first superstep is dropped. A program that
        charges from its first line on therefore takes the same time in every run. A
        warning says so where more than 1 ms was measured before. On real processes this
        does nothing.

        Args:
            seconds: 0 or more, and finite.

        Raises:
            ArgumentError: ``seconds`` is negative, infinite or no number, or leads to a
                virtual time of 146 years (2^62 ns).
            PartitionError: the run has ended.

        Cost: ``seconds`` of computation on virtual processors; no h, g or l.
        """
        self._check_not_over()
        if not _is_time(seconds):
            raise self._error(
                ArgumentError,
                f"charge: {seconds!r} is no time; it is 0 or more seconds, and finite",
            )
        clock = self._port.clock
        try:
            is_late = clock is not None and clock.charge(seconds)
        except OverflowError as error:
            raise self._error(ArgumentError, f"charge: {error}") from None
        if is_late:
            call_site.warn(
                "charge: what was computed before the first charge took more than 1 ms and counts "
                "as well, so that the virtual time differs from run to run; charge(0) in the first "
                "line of main lets only charges count",
                UserWarning,
            )

    def experiment(
        self, name: str, formula: str, /, *, sync: bool = False, **values: SupportsFloat
    ) -> AbstractContextManager[None]:
        """Measure the time of a block of the program, for which a formula is known.

        Use it as ``with bsp.experiment("f", "f[0] + f[1]*N/P", N=n): ...``. The trace of a run
        that is recorded has each passage of the block with its time on every process, and
        the coefficients are found from such traces. Otherwise only the formula is checked,
        the first time. A passage that an exception ends does not count.

        Args:
            name: of the block; blocks with one name have one formula.
            formula: a sum of parameters such as ``f[0]`` times expressions of names. They
                are given as ``values``, or measured: ``P`` processes of this group, of
                which this one is ``pid``.
            sync: let the processes of this group begin the block together. In a run that is
                recorded they wait for each other; puts, gets and messages of the program are
                not affected.
            values: the values of names in the formula; others are kept, too.

        Raises:
            UsageError: the formula cannot be read, a name in it has no value, or a value is
                no finite number.
            PartitionError: with ``sync``, the group cannot be used now.

        Cost: nothing; l with ``sync`` where the run is recorded.
        Source: Gonzalez et al., section 3.
        """
        passages = self._terms.passages
        try:
            check(name, formula, values)
            if passages is None:
                return OFF
            found = values_of(name, formula, values, {"P": self._nprocs, "pid": self._pid})
        except UsageError as error:
            raise self._error(UsageError, str(error)) from None
        if sync:
            with self.partition([self._nprocs]) as all_of_us:
                all_of_us.sync()
        return ExperimentBlock(passages, self, (name, formula, self._port.members), found)

    def abort(self, message: str, result: Any = None) -> NoReturn:
        """Stop every process of the run.

        Args:
            message: why, in words.
            result: what the caller of the run shall have all the same; it can be pickled.

        Raises:
            AbortError: always; ``bsplib.run`` raises it too, with ``result`` as an attribute.
            PartitionError: the run has ended.

        Cost: nothing; no superstep follows.
        Source: Hill et al. 1998, bsp_abort.
        """
        self._check_not_over()
        error = self._error(AbortError, str(message))
        assert isinstance(error, AbortError)
        error.result = result
        raise error
