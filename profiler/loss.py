"""A loss of a run: one type from its first draft to its sentence, and how losses are found.

What the book has lost at its roots is drafted as losses: by function and cost centre, whoever
called them; by the part of the account; and by process. At a call stack one superstep may bear
most of it (*one-off*), the same processes may (*fixed*), or no process does (*rotating*). These
losses add up to that of ``main``. Beside them stands what *could be saved*: the time that
transfers, supersteps and messages take which a program may not need; it is part of no sum.

The steps of a loss: drafted here, looked at and mended in :mod:`bsplib.profiler.loss_records`, told
in :mod:`bsplib.profiler.verdict`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler import kinds
from bsplib.profiler.account import PARTS
from bsplib.profiler.kinds import LEAST_TOLD, MOST
from bsplib.profiler.mends import LIKE_OTHERS, WITHOUT_PICKLES
from bsplib.profiler.survey import survey

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from bsplib.profiler._arrays import Floats
    from bsplib.profiler.book import Book
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.lines import LinePlace
    from bsplib.profiler.loss_lines import Stretch
    from bsplib.recording.records import Run


LEAST_SHARE = 0.05
"""A loss that is a smaller share of the time in ``main`` on a core has no sentence."""
_BOUND_SHARE = 0.25
"""A run that moves bytes for this share of the time in ``main`` is bound by them."""
_MOST_PLACES = 200
"""Call stacks that are looked at for each part of the account, those that lose most."""
FEW = 5
"""A place that is passed fewer times has neither a loss that happens once nor many messages, and
fewer samples name no line."""
_SHARE_ALONE = 0.2
"""Share of the loss, beyond an even share of it, from which on one process is always to blame; and
the greatest share of others beside those that lose as much as each other in the worst superstep."""


@dataclass(eq=False)
class Loss:
    """What is lost, or could be saved, at one place of a program for one reason.

    It is drafted from the sums of the book; what the records say and what a mended run would take
    is added in a pass over them, and the sentence at last.
    """

    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``, or of the kinds of ``bsplib.profiler.verdict``."""
    ns: int
    """What is lost, or could be saved, summed over all processes."""
    nprocs: int
    part: str | None = None
    """The part of the account that it is a part of."""
    habit: str = kinds.FIXED
    """``fixed``, ``rotating`` or ``one-off``: whether it is always the same process."""
    is_lost: bool = True
    """Whether it is a part of the loss of ``main``, and not of what could be saved."""
    origins: tuple[int, ...] = field(default=(), repr=False)
    """Call stacks; the one that loses most first."""
    members: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """Call stack and process of all records that lose something; of *one-off* losses the call stack
    and the position of the record."""
    chain: tuple[str, ...] = ()
    """Ids of the nodes from ``main`` to the cost centre that loses most."""
    nodes: tuple[str, ...] = ()
    """Ids of all cost centres; that of ``chain`` first."""
    sites: tuple[tuple[str, int], ...] = ()
    """The calls of the function that contains the cost centre, the greatest loss first: id of the
    calling function, and line."""
    pids: tuple[int, ...] = ()
    """The processes that are its root; empty where no one stands out."""

    # -- what the records say ----------------------------------------------------------------------

    superstep: int | None = None
    """Number of the superstep that bears most of it, for ``one-off``."""
    group: int = 0
    """Position in ``run.groups`` of the group of that superstep."""
    count: int = 0
    """Number of supersteps in which it is."""
    passes: int = 0
    """Number of supersteps at this place."""
    change_s: tuple[float, float] | None = None
    """How much longer it took in the first and in the last of them, where it grows or shrinks."""
    nothing_pids: tuple[int, ...] = ()
    """The processes that have nothing to do there."""
    sharing: int = 0
    """How many processes end these supersteps at the cost centre; 0: most of them."""
    faults: int = 0
    """For time in the system: the page faults at its cost centres, if it is theirs."""
    late: str = ""
    """For what those were late that others waited for, in a program of mpi4py; else empty."""
    total_bytes: int = 0
    most_bytes: int = 0
    """For transfers: all bytes, and the greatest h of a process in one superstep; for pickles those
    that were made."""
    line: LinePlace | Stretch | None = field(default=None, repr=False)
    """Where it was computed or blocked, as far as that is known."""

    # -- what mending brings, and how it is told ---------------------------------------------------

    mended_ns: dict[str, float] = field(default_factory=dict, repr=False)
    """What the run takes less by ways to mend it, named in :mod:`bsplib.profiler.mends`; the usual
    one first."""
    elapsed_s: float = 0.0
    """Elapsed time of the run."""
    text: str = field(default="", repr=False)
    """A sentence."""

    @property
    def seconds(self) -> float:
        """What is lost, or could be saved, in seconds, on average over the processes."""
        return self.ns / self.nprocs / 1e9

    @property
    def node(self) -> str | None:
        """Id of the cost centre that loses most; None if it is about the whole run."""
        return self.chain[-1] if self.chain else None

    @property
    def callers(self) -> tuple[str, ...]:
        """Ids of the functions that called the one with the cost centre."""
        return tuple(dict.fromkeys(function for function, _ in self.sites))

    @property
    def without_s(self) -> float | None:
        """What the run would take if this alone were mended in the usual way: shared evenly."""
        return self._mended_s(next(iter(self.mended_ns), ""))

    @property
    def as_others_s(self) -> float | None:
        """What the run would take if it were as short there as on the others."""
        return self._mended_s(next(iter(LIKE_OTHERS & self.mended_ns.keys()), ""))

    def _mended_s(self, how: str) -> float | None:
        return self.elapsed_s - self.mended_ns[how] / 1e9 if how in self.mended_ns else None

    @property
    def gain_s(self) -> float:
        """What the better way to mend it saves."""
        return max(self.mended_ns.values(), default=0.0) / 1e9

    def as_dict(self) -> dict[str, Any]:
        """Return what outputs show of it, as plain values."""
        left_out = {"origins", "members", "mended_ns", "ns", "nprocs", "line", "elapsed_s"}
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        names = ("seconds", "node", "callers", "without_s", "as_others_s")
        return {name: getattr(self, name) for name in names} | {
            name: value for name, value in shown.items() if name not in left_out
        }


def in_main_ns(book: Book) -> int:
    """Return the time of all processes in ``main``: the elapsed time less start and end."""
    return book.elapsed_ns * book.run.nprocs - book.whole()["ends"]


def on_core_ns(book: Book) -> int:
    """Return the time of all processes in ``main`` with a core, and without the recorder.

    What the recorder and other programs take does not decide what is worth a sentence about the
    program.
    """
    spent = book.whole()
    return in_main_ns(book) - spent["recording"] - spent["core"]


def least_ns(book: Book) -> float:
    """Return the least time of all processes that has a sentence.

    Where nearly all time is without a core, a share of the rest would be next to nothing.
    """
    return max(LEAST_SHARE * on_core_ns(book), LEAST_TOLD * in_main_ns(book))


# -- drafts of what is lost ------------------------------------------------------------------------

_KIND_OF = {
    parts.IMBALANCE: "",
    parts.TRANSFER_IMBALANCE: kinds.UNEVEN,
    parts.BLOCKED: kinds.BLOCKED,
}
"""The parts of the account whose losses have a place, and their kind where this is known before the
records are looked at."""


def drafts_of(callgraph: CallGraph, book: Book) -> list[Loss]:
    """Return the losses of a run as they are in the sums of its book, the greatest first."""
    nprocs, lost, at_stacks = book.run.nprocs, book.sums.losses, list[Loss]()
    most = sorted(lost, key=lambda place: -sum(lost[place].values()))
    for part in _KIND_OF:
        for origin in [origin for which, origin in most if which == part][:_MOST_PLACES]:
            at_stacks += _at_stack(callgraph, book, part, origin, lost[part, origin])
    at_stacks.sort(key=lambda each: -each.ns)

    def key(loss: Loss) -> tuple[object, ...]:
        (origin,) = loss.origins
        alone = origin if loss.habit == kinds.ONE_OFF else None
        return loss.part, loss.habit, loss.pids, callgraph.origins[origin][-2:], alone

    found = [joined(callgraph, alike) for alike in grouped(at_stacks, key)]
    if ns := book.whole()["core"]:  # once for the run: it is not the program's
        found.append(Loss(kinds.CORE, ns, nprocs, PARTS[parts.CORE]))
    return sorted(found, key=lambda loss: -loss.ns)


def grouped(losses: Iterable[Loss], key: Callable[[Loss], Hashable]) -> list[list[Loss]]:
    """Return the losses of each key, in their order."""
    groups: defaultdict[Hashable, list[Loss]] = defaultdict(list)
    for loss in losses:
        groups[key(loss)].append(loss)
    return list(groups.values())


def joined(callgraph: CallGraph, losses: list[Loss]) -> Loss:
    """Return several losses as one of the kind and at the cost centre of the first of them."""
    first = losses[0]
    ways = [how for how in first.mended_ns if all(how in each.mended_ns for each in losses)]
    loss = replace(
        first,
        ns=sum(each.ns for each in losses),
        count=sum(each.count for each in losses),
        passes=sum(each.passes for each in losses),
        change_s=first.change_s if len(losses) == 1 else None,
        pids=tuple(sorted({pid for each in losses for pid in each.pids})),
        members=tuple(pair for each in losses for pair in each.members),
        mended_ns={how: sum(each.mended_ns[how] for each in losses) for how in ways},
    )
    origins = dict.fromkeys(origin for each in losses for origin in each.origins)
    set_place(loss, callgraph, list(origins))
    return loss


def set_place(loss: Loss, callgraph: CallGraph, origins: list[int]) -> None:
    """Note at which call stacks a loss is."""
    loss.origins = tuple(origins)
    chains = [callgraph.origins[origin] for origin in origins]
    loss.chain = chains[0]
    loss.nodes = tuple(dict.fromkeys(chain[-1] for chain in chains))
    loss.sites = sites_of(callgraph, origins, loss.chain[-2:])


def sites_of(
    callgraph: CallGraph, origins: Iterable[int], end: tuple[str, ...]
) -> tuple[tuple[str, int], ...]:
    """Return the calls at the end of some call stacks that lead to a function and its cost centre.

    Each has the id of the caller, and the line of its call.
    """
    found = dict[tuple[str, int], None]()
    for origin in origins:
        chain = callgraph.origins[origin]
        if len(chain) > 2 and chain[-2:] == end:
            found[chain[-3], callgraph.call_lines(origin)[-2]] = None
    return tuple(found)


def _at_stack(
    callgraph: CallGraph, book: Book, part: int, origin: int, by_pid: dict[int, int]
) -> Iterator[Loss]:
    """Yield what is lost at a call stack, under a part of the account, alike to some processes.

    That is what its worst superstep loses, if that is most; what processes lose that are always
    to blame; and what the others do.
    """
    nprocs = book.run.nprocs

    def draft(habit: str, pids: tuple[int, ...], by_place: Mapping[int, int]) -> Loss:
        kind, ns = _KIND_OF[part] or habit, sum(by_place.values())
        members = tuple((origin, place) for place in sorted(by_place))
        return Loss(kind, ns, nprocs, PARTS[part], habit, True, (origin,), members, pids=pids)

    worst_ns, _, records = book.sums.worst[origin, part]
    in_worst = Counter[int]()
    for _, pid, ns in records:
        in_worst[pid] += ns
    least = MOST * max(in_worst.values(), default=0)
    alike = tuple(sorted(pid for pid, ns in in_worst.items() if ns >= least))
    known = {position: ns for position, _, ns in records if position >= 0}
    is_once = worst_ns > MOST * sum(by_pid.values())
    if known and is_once and _passes(callgraph, callgraph.origins[origin]) >= FEW:
        yield draft(kinds.ONE_OFF, alike, known)
        by_pid, alike = {pid: ns - in_worst[pid] for pid, ns in by_pid.items()}, ()
    left = {pid: ns for pid, ns in sorted(by_pid.items()) if ns > 0}
    whole = sum(left.values())
    team = {pid: left[pid] for pid in alike if pid in left}
    if 1 < len(team) < nprocs and _is_team(list(team.values()), whole):
        yield draft(kinds.FIXED, tuple(team), team)
        left = {pid: ns for pid, ns in left.items() if pid not in team}
    always = max((1 / nprocs + _SHARE_ALONE * (1 - 1 / nprocs)) * whole, 1)
    alone = {pid: ns for pid, ns in left.items() if ns >= always}
    for pid, ns in alone.items():
        yield draft(kinds.FIXED, (pid,), {pid: ns})
    if others := {pid: ns for pid, ns in left.items() if pid not in alone}:
        yield draft(kinds.ROTATING, (), others)


def _passes(callgraph: CallGraph, chain: tuple[str, ...]) -> int:
    """Return in how many supersteps a call chain was passed."""
    if len(chain) < 2:
        return int(callgraph.graph.nodes[chain[0]]["cost"].count)
    return callgraph.onward(chain[:-1])[chain[-1]].count


def _is_team(shares: list[int], whole: int) -> bool:
    """Tell whether processes that lose alike in the worst superstep do so in all of them."""
    return min(shares) >= MOST * max(shares) and sum(shares) >= (1 - _SHARE_ALONE) * whole


# -- drafts of what could be saved -----------------------------------------------------------------


def savings_of(run: Run) -> list[Loss]:
    """Return what could be saved anywhere in a run; how much, and where, the records say."""
    pickling = parts.USEFUL if run.is_interleaved else parts.TRANSFERS
    possible = (
        (kinds.STEPS, parts.LATENCY, True),
        (kinds.MESSAGES, parts.LATENCY, run.is_interleaved),
        (kinds.SYSTEM, parts.USEFUL, run.samples is not None),
        (kinds.PICKLING, pickling, survey(run).pickling_ns > 0),
    )
    return [
        Loss(kind, 0, run.nprocs, PARTS[part], is_lost=False)
        for kind, part, is_possible in possible
        if is_possible
    ]


def transfers_of(callgraph: CallGraph, book: Book, moved_ns: Floats) -> list[Loss]:
    """Return the places at which half the bytes save much, in a run that is bound by them.

    Args:
        callgraph: the call graph of the run.
        book: its book.
        moved_ns: for how long bytes were moved, by call stack.
    """
    found, inside = list[Loss](), on_core_ns(book)
    if moved_ns.sum() < _BOUND_SHARE * inside:
        return found
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for origin in np.argsort(-moved_ns, kind="stable").tolist():
        places[callgraph.origins[origin][-2:]].append(origin)
    for origins in places.values():
        if (ns := int(moved_ns[origins].sum() / 2)) >= least_ns(book):
            part = PARTS[parts.TRANSFERS]
            loss = Loss(kinds.COMMUNICATION, ns, book.run.nprocs, part, is_lost=False)
            set_place(loss, callgraph, origins)
            found.append(loss)
    return found


_LARGE_RESULTS = 10**6
"""Results of fewer bytes take no longer than the end of processes does."""


def results_of(callgraph: CallGraph, book: Book) -> list[Loss]:
    """Return what the results of ``main`` take after its end, where they are large."""
    run = book.run
    life, nbytes = run.lifetime, run.meta.get("result_bytes", 0)
    if life is None or life.collected is None or run.part_of is not None:
        return []
    ended = max((moment for moment in life.finished if moment is not None), default=life.collected)
    if type(nbytes) is not int or nbytes < _LARGE_RESULTS:
        return []
    loss = Loss(kinds.PICKLING, 0, run.nprocs, PARTS[parts.ENDS], is_lost=False)
    loss.mended_ns = {WITHOUT_PICKLES: life.collected - ended}
    loss.ns, loss.total_bytes = run.nprocs * (life.collected - ended), nbytes
    loss.chain = loss.nodes = (callgraph.root,)
    return [loss]
