"""The verdict on a run: at most five sentences that name what is lost, and who loses it.

The sentences speak of the elapsed time, and a last one of what is left of it, by the parts of
the account: together they account for all of it. Their order is by what the run would save.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler.account import PARTS, TITLES
from bsplib.profiler.clustered_losses import LEAST_SAVED, LEAST_SHARE
from bsplib.profiler.hosts import ProcessNames
from bsplib.profiler.kinds import (
    BLOCKED,
    COMMUNICATION,
    FAN_IN,
    FAN_OUT,
    FIXED,
    GROUPS,
    ONE_OFF,
    ROTATING,
    STEPS,
)
from bsplib.profiler.loss_sums import BYTES, COMM, COMP, CORES, SMALL, SUB_GROUPS, SYNC, WAIT
from bsplib.profiler.mpi_words import SMALL_MESSAGES
from bsplib.profiler.whatif import EVEN, STAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.loss_drafts import ClusteredLoss

MOST_SENTENCES = 5
BALANCED_SHARE = 0.1
"""A run that loses less than this share, and nowhere ``LEAST_SHARE``, is balanced."""
MOST_OF_IT = 0.5
"""Share of the losses that lie below a function which is named for them, and of a loss that
mending it has to save."""
_LEAST_SAVED = 0.01
"""A loss is hidden by others if to mend it alone saves a smaller share of the elapsed time, and
less than most of what is lost.
"""
_LEAST_LISTED = 0.005
"""What is a smaller share of the elapsed time has no sentence, and is no part in the last one."""
BALANCED, SPREAD, LITTLE, REST = "balanced", "spread", "little", "rest"
"""Kinds of the sentence of a run in which no place loses ``LEAST_SHARE``, or so little that it has
no sentence, and of the last one."""
NOTHING = "Nothing was recorded that takes time."
"""Sentence about a run without elapsed time."""
NO_SUPERSTEPS = "No time was recorded in supersteps, and so nothing is lost in them."
"""Sentence about a run all of whose time is its start and its end."""


class Sentence(NamedTuple):
    """A sentence of a verdict."""

    text: str
    seconds: float
    """What the sentence is about, in seconds of the elapsed time."""
    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``, ``BALANCED``, ``SPREAD``, ``LITTLE`` or ``REST``."""
    node: str | None = None
    """Id of the cost centre; None if the sentence is about the whole run."""
    superstep: int | None = None
    """Its number in the root group, where the sentence is about one superstep."""
    part: str | None = None
    """The part of the account that it is about."""
    without_s: float | None = None
    """What the run would take if this alone were mended; None if that is not known."""
    who: tuple[int, ...] = ()
    """The processes that are waited for, or blocked; empty where no one stands out."""
    nodes: tuple[str, ...] = ()
    """Ids of all cost centres that it is about; ``node`` first."""


class Verdict(NamedTuple):
    """What the elapsed time of a run was lost for."""

    balanced: bool
    sentences: tuple[Sentence, ...]
    """What would save most first."""
    rest: Sentence | None = None
    """What all other time was used for, by the parts of the account."""

    def __str__(self) -> str:
        told = (*self.sentences, *([self.rest] if self.rest else []))
        return "\n".join(sentence.text for sentence in told)


def judge(book: GraphBook) -> Verdict:
    """Return the verdict on the run of a book."""
    whole = book.account.elapsed_ns * book.callgraph.run.nprocs
    if whole == 0:
        return Verdict(True, (Sentence(NOTHING, 0.0, BALANCED),))
    inside = book.account.in_supersteps_ns()
    worth = [each for each in book.clustered.losses if each.ns >= LEAST_SHARE * inside]
    seen = [each for each in worth if each.ns >= _LEAST_LISTED * whole]
    least_s = LEAST_SAVED * inside / 1e9 / book.callgraph.run.nprocs
    told = sorted(
        (pair for pair in _told(book, seen) if not _is_noise(pair[0], book, least_s)),
        key=lambda pair: (
            -_gain_s(pair[0], book.elapsed_s),
            -pair[0].seconds,
        ),
    )[:MOST_SENTENCES]
    about = _about_supersteps if worth and not seen else _about_the_run
    sentences = [each for each, _ in told] or [about(book)]
    spent = Counter(book.account.whole())
    for _, clustered in told:
        shares = dict(zip(PARTS, clustered.shares, strict=True)) if clustered.shares else {}
        spent.subtract(shares or {clustered.part: clustered.ns})
    rest = _rest(spent, whole, book.elapsed_s, bool(told))
    return Verdict(sentences[0].kind == BALANCED, tuple(sentences), rest)


def _told(
    book: GraphBook, clustered_losses: list[ClusteredLoss]
) -> list[tuple[Sentence, ClusteredLoss]]:
    return [(sentence(book, each, mended=True), each) for each in clustered_losses]


def _gain_s(sentence: Sentence, elapsed_s: float) -> float:
    """Return the seconds that a remedy saves, at most those that the sentence speaks of.

    Where transfers are evened, a replay shifts others as well, and may save more by chance.
    """
    return min(elapsed_s - (sentence.without_s or 0.0), sentence.seconds)


def _is_noise(sentence: Sentence, book: GraphBook, least_s: float) -> bool:
    """Tell whether transfers differ now and then, so that to even them saves nothing."""
    saved_s = book.elapsed_s - (sentence.without_s or 0.0)
    return sentence.part == "transfer_imbalance" and saved_s < least_s


def _rest(spent: Counter[str], whole: int, elapsed_s: float, others: bool) -> Sentence:
    """Return the last sentence: what is left of each part of the account."""
    left = sum(spent.values())
    listed = [
        f"{TITLES[part]} {_percent(spent[part] / whole)}"
        for part in sorted(PARTS, key=lambda part: -spent[part])
        if spent[part] >= _LEAST_LISTED * whole
    ]
    begin = f"The other {_percent(left / whole)}" if others else "All of it"
    text = f"{begin}: {', '.join(listed)}." if listed else f"{begin}: many small parts."
    return Sentence(text, left / whole * elapsed_s, REST)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.005 or share == 0 else "under 1%"


def _about_supersteps(book: GraphBook) -> Sentence:
    """Return the sentence about a run of which the supersteps are a small part."""
    seconds = book.account.in_supersteps_ns() / 1e9 / book.callgraph.run.nprocs
    text = (
        f"{_figures(seconds, book.elapsed_s)} are spent in supersteps, and no place in the "
        "program loses 1% of the run."
    )
    return Sentence(text, seconds, LITTLE)


def _about_the_run(book: GraphBook) -> Sentence:
    """Return the sentence about a run in which no place loses much."""
    spent, elapsed_s = book.account.whole(), book.elapsed_s
    if book.account.in_supersteps_ns() == 0:
        return Sentence(NO_SUPERSTEPS, 0.0, BALANCED)
    whole = book.account.elapsed_ns * book.callgraph.run.nprocs
    lost_ns = spent["imbalance"] + spent["transfer_imbalance"]
    figures = _figures(lost_ns / whole * elapsed_s, elapsed_s)
    if lost_ns < BALANCED_SHARE * book.account.in_supersteps_ns():
        text = (
            f"Balanced: {figures} are lost in waiting for other processes, and no place in the "
            "program loses 5% or more."
        )
        return Sentence(text, lost_ns / whole * elapsed_s, BALANCED)
    node = _above_most_of_it(book)
    name = fmt.visible(book.callgraph.graph.nodes[node]["node"].name)
    text = (
        f"{figures} are lost in waiting for other processes, spread over many places of which "
        f"none loses 5%; half of it or more is lost below {name}."
    )
    return Sentence(text, lost_ns / whole * elapsed_s, SPREAD, node)


def _above_most_of_it(book: GraphBook) -> str:
    """Return the lowest node of the path below which most of what is lost is lost."""
    chain = book.path() or [book.callgraph.root]
    lowest = chain[0]
    for depth in range(1, len(chain)):
        if book.onward(chain[:depth])[chain[depth]].loss_s < MOST_OF_IT * book.main.loss_s:
            break
        lowest = chain[depth]
    return lowest


# -- sentences ------------------------------------------------------------------------------------


def sentence(book: GraphBook, clustered: ClusteredLoss, *, mended: bool = False) -> Sentence:
    """Return the sentence about a loss.

    Args:
        book: the book of its run.
        clustered: the loss.
        mended: also compute what the run would take without it.
    """
    elapsed_s = book.elapsed_s
    seconds = clustered.ns / 1e9 / book.callgraph.run.nprocs
    without_s = _without_s(clustered) if mended else None
    text = f"{_figures(seconds, elapsed_s)} {_ABOUT[clustered.cause](clustered, book)}"
    if without_s is not None:
        text += f"; {_mended(clustered, without_s, elapsed_s, seconds)}"
    return Sentence(
        f"{text}.",
        seconds,
        clustered.kind,
        clustered.chain[-1] if clustered.chain else None,
        clustered.superstep if clustered.group == 0 else None,
        clustered.part,
        without_s,
        clustered.pids if clustered.kind != COMMUNICATION else (),
        clustered.nodes,
    )


def _without_s(clustered: ClusteredLoss) -> float | None:
    return None if clustered.without_ns is None else clustered.without_ns / 1e9


def _mended(clustered: ClusteredLoss, without_s: float, elapsed_s: float, lost_s: float) -> str:
    """Return what the run would take without a loss; other losses may hide it.

    Of remedies that bring the same, the first is told.
    """
    usual = _REMEDIES.get(clustered.cause) or _fewer(clustered)
    every = [(usual, without_s), *((_FURTHER[name], ns / 1e9) for name, ns in clustered.remedies)]
    worth = [each for each in every if _saves_much(each[1], elapsed_s, lost_s)]
    if not worth:
        return "to mend this alone would save little, since other processes take as long"
    (remedy, first_s), *others = worth
    told = {fmt.seconds(seconds): name for name, seconds in reversed(others)}
    told.pop(fmt.seconds(first_s), None)
    more = "".join(f", {name} {seconds}" for seconds, name in reversed(told.items()))
    return f"{remedy} the run would take {fmt.seconds(first_s)}{more}"


def tells_remedy(sentence: Sentence, elapsed_s: float) -> bool:
    """Tell whether a sentence of a run says what it would take with the usual remedy."""
    without_s = sentence.without_s
    return without_s is not None and _saves_much(without_s, elapsed_s, sentence.seconds)


def _saves_much(without_s: float, elapsed_s: float, lost_s: float) -> bool:
    return elapsed_s - without_s >= min(_LEAST_SAVED * elapsed_s, MOST_OF_IT * lost_s)


def _fewer(clustered: ClusteredLoss) -> str:
    if clustered.needless == 0:
        return "with half as many"
    if clustered.needless == clustered.count:
        return "without them"
    return "without these, and with half of the others,"


def _figures(seconds: float, elapsed_s: float) -> str:
    """Return an amount as a part of the elapsed time; figures of one unit name it once."""
    amount, whole = fmt.seconds(seconds), fmt.seconds(elapsed_s)
    number, _, unit = amount.partition(" ")
    lost = number if unit == whole.partition(" ")[2] else amount
    return f"{lost} of {whole} ({_percent(seconds / elapsed_s if elapsed_s else 0.0)})"


_REMEDIES = {
    COMP: "with an even share",
    SUB_GROUPS: "with equal sub-groups",
    COMM: "with even transfers",
    WAIT: "without it",
    BYTES: "with half as many bytes",
    CORES: "with a core for each process",
}
"""What is done about a cause, before "the run would take"."""
_FURTHER = {
    EVEN: "with the bytes evenly distributed",
    STAGES: "in two stages (if all get the same values, or what comes is combined)",
}
"""What else can be done about transfers."""


def _of_computation(clustered: ClusteredLoss, book: GraphBook) -> str:
    where = _where(clustered, book.callgraph)
    line = book.loss_lines.text(clustered)
    computes = f", which computes {line}" if line else ""
    if clustered.habit == ROTATING:
        who = "another process each time"
        return f"are lost waiting for {who} {where} (rotating straggler){computes}"
    name, late = ProcessNames(book.callgraph.run)(clustered.pids), _listed(clustered.late)
    if clustered.habit == ONE_OFF:
        once = f"most of it in {_superstep(clustered)} for {name}"
        return f"are lost waiting {where}, {once} (one-off straggler{late}){computes}"
    kind = f"fixed straggler{_branch(clustered)}{late}"
    return f"are lost waiting for {name} {where} ({kind}){computes}"


def _listed(more: str) -> str:
    return f", {more}" if more else ""


def _of_bytes(clustered: ClusteredLoss, book: GraphBook) -> str:
    where = _where(clustered, book.callgraph)
    way = {FAN_IN: "to", FAN_OUT: "from"}.get(clustered.kind, "to and from")
    names = ProcessNames(book.callgraph.run)
    who = "another process each time" if clustered.habit == ROTATING else names(clustered.pids)
    kind = clustered.kind if clustered.habit == FIXED else f"{clustered.habit} {clustered.kind}"
    once = f", most of it in {_superstep(clustered)}" if clustered.habit == ONE_OFF else ""
    return f"are lost waiting for the transfers {way} {who} {where}{once} ({kind})"


def _of_sub_groups(clustered: ClusteredLoss, book: GraphBook) -> str:
    name = ProcessNames(book.callgraph.run)(clustered.pids)
    where = _where(clustered, book.callgraph)
    return f"are lost {where}, waiting for the sub-group of {name}, which costs most ({GROUPS})"


def _of_blocked(clustered: ClusteredLoss, book: GraphBook) -> str:
    names = ProcessNames(book.callgraph.run)
    who = "processes are" if clustered.habit == ROTATING else f"{names(clustered.pids)} is"
    once = f", most of it in {_superstep(clustered)}" if clustered.habit == ONE_OFF else ""
    why = "asleep, or waiting for a disk, a lock or another program"
    where = _where(clustered, book.callgraph)
    if line := book.loss_lines.text(clustered):
        where = f"{line}, in supersteps that end {where}"
    return f"pass while {who} blocked {where}{once} ({BLOCKED}: {why})"


_NEEDLESS = {
    STEPS: "move no bytes",
    SMALL_MESSAGES: "send nothing that came in the exchange before, and could be one with it",
}
"""What supersteps are without which the program would do the same, by their kind."""


def _of_supersteps(clustered: ClusteredLoss, book: GraphBook) -> str:
    most = ", most of them" if len(clustered.nodes) > 1 else ""
    kind = SMALL_MESSAGES if clustered.cause == SMALL else clustered.kind
    none = f", {clustered.needless} of which {_NEEDLESS[kind]}" if clustered.needless else ""
    where = _where(clustered, book.callgraph)
    count = fmt.counted(clustered.count, "superstep")
    return (
        f"are spent for the end of {count}{most} {where}, more than for their work ({kind}{none})"
    )


def _of_transfers(clustered: ClusteredLoss, book: GraphBook) -> str:
    where = _where(clustered, book.callgraph)
    name = ProcessNames(book.callgraph.run)(clustered.pids)
    steps = fmt.counted(clustered.count, "superstep")
    sizes = (
        f"{fmt.size(clustered.total_bytes)} in {steps}, at most "
        f"h = {fmt.size(clustered.most_bytes)} for {name}"
    )
    return f"are spent in transfers {where}: {sizes} ({COMMUNICATION})"


def _of_cores(_: ClusteredLoss, book: GraphBook) -> str:
    run = book.callgraph.run
    cores = run.meta.get("cores")
    where = f"one of {cores} cores" if isinstance(cores, int) and cores > 1 else "the core"
    why = f"{run.nprocs} processes are more than the cores"
    if isinstance(cores, int) and run.nprocs <= cores:  # those of all hosts together
        why = "others use the cores, too, or one host has more processes than cores"
    return f"are spent waiting for {where}, since {why}: this is no imbalance of the program"


_ABOUT: dict[str, Callable[[ClusteredLoss, GraphBook], str]] = {
    COMP: _of_computation,
    SUB_GROUPS: _of_sub_groups,
    COMM: _of_bytes,
    WAIT: _of_blocked,
    SYNC: _of_supersteps,
    SMALL: _of_supersteps,
    BYTES: _of_transfers,
    CORES: _of_cores,
}


def _branch(clustered: ClusteredLoss) -> str:
    if not clustered.sharing:
        return ""
    who = "it takes" if clustered.sharing == 1 else f"{clustered.sharing} of the processes take"
    return f" in a branch that only {who}"


def _superstep(clustered: ClusteredLoss) -> str:
    return f"superstep {clustered.superstep}" + (" of a sub-group" if clustered.group else "")


def _where(clustered: ClusteredLoss, callgraph: CallGraph) -> str:
    """Return the function, line and callers of a cost centre."""
    nodes = callgraph.graph.nodes
    names = [fmt.visible(nodes[node]["node"].name) for node in clustered.chain[-2:]]
    if len(names) == 1:
        return f"in {names[0]}"
    function, leaf = names
    if nodes[clustered.chain[-1]]["node"].sync == "end":
        leaf += ", at its end"
    return f"in {function} ({leaf}){_called(clustered, callgraph)}{_elsewhere(clustered)}"


def _elsewhere(clustered: ClusteredLoss) -> str:
    """Return at how many other cost centres the supersteps end."""
    if len(clustered.nodes) < 2 or clustered.kind == STEPS:
        return ""
    return f" and at {fmt.counted(len(clustered.nodes) - 1, 'other place')}"


def _called(clustered: ClusteredLoss, callgraph: CallGraph) -> str:
    """Return by whom the function that contains a cost centre was called."""
    if not clustered.sites:
        return ""
    first, *others = clustered.sites
    name = fmt.visible(callgraph.graph.nodes[first.function]["node"].name)
    more = f" and from {fmt.counted(len(others), 'other line')}" if others else ""
    return f", called by {name} at line {first.line}{more}"
