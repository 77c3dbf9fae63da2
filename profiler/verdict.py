"""The verdict on a run: at most five sentences that name what is lost, and who loses it.

All shares are of the time in ``main``. Sentences about losses come first, by what to mend them
would save; with the rest in small losses, of which the last sentence speaks, they add up to the
loss of ``main``. Those about what could be saved stand after them, and are part of no sum.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler import kinds, mends
from bsplib.profiler.account import TITLES
from bsplib.profiler.format import processes_named
from bsplib.profiler.kinds import LEAST_TOLD, MOST
from bsplib.profiler.lines import LinePlace
from bsplib.profiler.loss import LEAST_SHARE, Loss, in_main_ns, least_ns, on_core_ns, sites_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.profiler.book import Book
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Run

MOST_SENTENCES = 5
MOST_WORDS = 30
"""Limit for the words of a sentence before it tells what the run would take."""
BALANCED_SHARE = 0.1
"""A run that loses less than this share, and at no place enough for a sentence, is balanced."""
_SHORT = 1 / 3
"""A run of which start and end, without large results, take more is too short to judge, unless a
place in ``main`` takes ``LEAST_SHARE`` of all the time."""
BALANCED, SPREAD, REST, SHORT = "balanced", "spread", "rest", "too short"
"""Kinds of the sentence of a run in which no place loses enough for one, of the last one, and of
the one about a run that is too short."""
NOTHING = "Nothing was recorded that takes time."
"""Sentence about a run without elapsed time."""
NO_SUPERSTEPS = "No time was recorded in supersteps, and so nothing is lost in them."
"""Sentence about a run all of whose time is its start and its end."""


class Verdict(NamedTuple):
    """What the time in ``main`` was lost for."""

    balanced: bool
    sentences: tuple[Loss, ...]
    """What is lost, then what could be saved; what would save most first."""
    rest: Loss | None = None
    """What all other time was used for, by the parts of the account."""
    short: Loss | None = None
    """That the run is too short to judge, where start and end are what takes long."""

    def __str__(self) -> str:
        told = (self.short, *self.sentences, self.rest)
        return "\n".join(loss.text for loss in told if loss)


def judge(callgraph: CallGraph, book: Book, losses: Sequence[Loss]) -> Verdict:
    """Return the verdict on a run.

    Args:
        callgraph: the call graph of the run.
        book: its book.
        losses: what :func:`bsplib.profiler.loss_records.find` has found in it.
    """
    if book.elapsed_ns == 0:
        return Verdict(True, (_about(book, BALANCED, NOTHING),))
    lost = [each for each in losses if each.is_lost and each.ns >= least_ns(book)]
    saving = [loss for loss in lost if _tells_remedy(loss, book)]
    lost = sorted(saving or lost, key=_by_gain)
    savings = [each for each in losses if not each.is_lost]
    lost = lost[: MOST_SENTENCES - bool(savings)]
    told = sorted([*lost, *savings[: MOST_SENTENCES - len(lost)]], key=_by_gain)
    told = told or [_about_the_run(callgraph, book)]
    rest, short = _rest(book, lost), None
    ends = book.whole()["ends"] - sum(each.ns for each in savings if each.part == "ends")
    whole = book.elapsed_ns * book.run.nprocs
    if ends > _SHORT * whole and all(each.ns < LEAST_SHARE * whole for each in (*lost, *savings)):
        main_s, elapsed_s = _main_s(book), book.elapsed_ns / 1e9
        where = f"{fmt.seconds(main_s)} of {fmt.seconds(elapsed_s)} are in main"
        short = _about(book, SHORT, f"The run is too short to judge: {where}.", in_main_ns(book))
    return Verdict(told[0].kind == BALANCED, tuple(told), rest, short)


def _by_gain(loss: Loss) -> tuple[float, int]:
    """Return a key by which what saves most when it is mended comes first."""
    return -min(loss.gain_s, loss.seconds), -loss.ns


def _about(book: Book, kind: str, text: str, ns: int = 0, node: str | None = None) -> Loss:
    """Return a sentence that is about the whole run."""
    nodes = () if node is None else (node,)
    return Loss(kind, ns, book.run.nprocs, is_lost=False, chain=nodes, nodes=nodes, text=text)


def _main_s(book: Book) -> float:
    return in_main_ns(book) / book.run.nprocs / 1e9


def tells_remedy(loss: Loss) -> bool:
    """Tell whether a sentence says what the run would take if this were mended."""
    return "the run would take" in loss.text


def _tells_remedy(loss: Loss, book: Book) -> bool:
    """Tell whether it saves something to mend a loss alone: not that of others at the same line."""
    alone = [ns for how, ns in loss.mended_ns.items() if how in mends.LIKE_OTHERS]
    ways = alone or loss.mended_ns.values()
    return any(_saves_much(ns / 1e9, loss, _main_s(book)) for ns in ways)


def _saves_much(saved_s: float, loss: Loss, main_s: float) -> bool:
    """Tell whether no other loss hides what mending saves: most of it, or as much as is told."""
    return saved_s > 0 and saved_s >= min(LEAST_TOLD * main_s, MOST * loss.seconds)


def _rest(book: Book, told: list[Loss]) -> Loss:
    """Return the last sentence: what is left of each part of the account in ``main``."""
    whole, spent = max(in_main_ns(book), 1), Counter(book.whole())
    del spent["ends"]
    for loss in told:
        spent[str(loss.part)] -= loss.ns
    left = sum(spent.values())
    small = sum(spent.pop(part) for part in _LOST) if told else 0
    listed = [
        f"{TITLES[part]} {_percent(ns / whole)}"
        for part, ns in spent.most_common()
        if ns >= LEAST_TOLD * whole
    ]
    text = ""
    if small >= LEAST_TOLD * whole:
        text = f"The rest in small losses: {_percent(small / whole)}. "
    others = left - small
    begin = f"The other {_percent(others / whole)}" if told else "All of it"
    text += f"{begin}: {', '.join(listed)}." if listed else f"{begin}: many small parts."
    return _about(book, REST, text, left)


_LOST = ("imbalance", "transfer_imbalance", "blocked", "core")


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.005 or share == 0 else "under 1%"


def _about_the_run(callgraph: CallGraph, book: Book) -> Loss:
    """Return the sentence about a run in which no place loses much."""
    spent, inside = book.whole(), on_core_ns(book)
    if inside == 0:
        return _about(book, BALANCED, NO_SUPERSTEPS)
    lost_ns = spent["imbalance"] + spent["transfer_imbalance"]
    figures = _figures(lost_ns / book.run.nprocs / 1e9, _main_s(book))
    if lost_ns < BALANCED_SHARE * inside:
        text = (
            f"Balanced: {figures} are lost in waiting for other processes, and no place in the "
            "program loses 5% or more."
        )
        return _about(book, BALANCED, text, lost_ns)
    node = _above_most_of_it(callgraph, book)
    name = fmt.visible(callgraph.graph.nodes[node]["node"].name)
    text = (
        f"{figures} are lost in waiting for other processes, spread over many places of which "
        f"none loses 5%; half of it or more is lost below {name}."
    )
    return _about(book, SPREAD, text, lost_ns, node)


def _above_most_of_it(callgraph: CallGraph, book: Book) -> str:
    """Return the lowest node of the path below which most of what is lost is lost."""
    chain, whole = [callgraph.root], book.time_of(range(len(callgraph.origins))).loss_ns
    while True:
        through = callgraph.through(chain)
        lost = {node: book.time_of(origins).loss_ns for node, origins in through.items()}
        most = max(lost, key=lambda node: lost[node], default="")
        if not most or lost[most] < MOST * whole:
            return chain[-1]
        chain.append(most)


# -- sentences ------------------------------------------------------------------------------------


def tell(callgraph: CallGraph, book: Book, loss: Loss) -> None:
    """Put a loss into a sentence.

    Its parts stand in the order of how much, where, by whom, how often, and why. Where they have
    more words than ``MOST_WORDS``, those are left out that help least to find the place.
    """
    main_s = _main_s(book)
    verb = "are lost" if loss.is_lost else "could be saved"
    is_after = loss.part == "ends"
    amount = fmt.seconds(loss.seconds) if is_after else _figures(loss.seconds, main_s)
    phrases = [_Phrase(f"{amount} {verb}"), *_told(callgraph, loss, main_s)]
    while len("".join(each.text for each in phrases).split()) > MOST_WORDS:
        least = max(phrases, key=lambda each: each.rank)
        if not least.rank:
            break
        phrases.remove(least)
    loss.text = "".join(each.text for each in phrases)
    if told := _mended(loss, main_s):
        loss.text += f"; {told}"
    loss.text += "."


class _Phrase(NamedTuple):
    """A part of a sentence."""

    text: str
    rank: int = 0
    """The greatest is left out first; 0 is never left out."""


def _told(callgraph: CallGraph, loss: Loss, main_s: float) -> list[_Phrase]:
    """Return the phrases that follow how much is lost."""
    if loss.kind == kinds.CORE:
        return [_Phrase(_of_cores(callgraph.run, loss.seconds / main_s))]
    return [
        *_where(callgraph, loss),
        *_who(callgraph, loss),
        *_how_often(callgraph.run, loss),
        _Phrase(f" ({_why(loss)}"),
        *_why_more(loss),
        _Phrase(")"),
    ]


def _where(callgraph: CallGraph, loss: Loss) -> list[_Phrase]:
    """Return function, line and callers of a cost centre, and the line that was executed."""
    nodes = callgraph.graph.nodes
    names = [fmt.visible(nodes[node]["node"].name) for node in loss.chain[-2:]]
    if len(names) == 1:
        return [_Phrase(f" {'after' if loss.part == 'ends' else 'in'} {names[0]}")]
    function, leaf = names
    is_end = nodes[loss.chain[-1]]["node"].sync == "end"
    phrases = [
        _Phrase(f" in {function} ({leaf}"),
        _Phrase(", at its end" * is_end, 1),
        _Phrase(")"),
    ]
    if loss.sites:
        (caller, call_line), *others = loss.sites
        name = fmt.visible(nodes[caller]["node"].name)
        every = sites_of(callgraph, range(len(callgraph.origins)), loss.chain[-2:])
        rank = 1 if len(every) > 1 else 6  # or else the function tells the place
        phrases.append(_Phrase(f", called by {name} at line {call_line}", rank))
        if others:
            phrases.append(_Phrase(f" and {fmt.counted(len(others), 'other line')}", rank))
    if len(loss.nodes) > 1 and (loss.is_lost or loss.kind == kinds.PICKLING):
        phrases.append(_Phrase(f" and at {fmt.counted(len(loss.nodes) - 1, 'other place')}", 8))
    if loss.line is not None:
        verb = {kinds.BLOCKED: "blocked", kinds.PICKLING: "sent"}.get(loss.kind, "computed")
        line = loss.line.inside(nodes[loss.chain[-2]]["node"], nodes[loss.chain[-1]]["node"].line)
        phrases.append(_Phrase(f", {verb} {line}", 1 if isinstance(loss.line, LinePlace) else 3))
    return phrases


def _who(callgraph: CallGraph, loss: Loss) -> list[_Phrase]:
    if loss.kind in {kinds.STEPS, kinds.MESSAGES, kinds.SYSTEM, kinds.PICKLING}:
        return []
    who = processes_named(callgraph.run, loss.pids) if loss.pids else "another process each time"
    if loss.kind == kinds.COMMUNICATION:
        most = f", at most h = {fmt.size(loss.most_bytes)} for {who}"
        return [_Phrase(f", with half of {fmt.size(loss.total_bytes)}"), _Phrase(most, 5)]
    if loss.part == "transfer_imbalance":
        way = {kinds.FAN_IN: "to", kinds.FAN_OUT: "from"}.get(loss.kind, "to and from")
        return [_Phrase(f", by transfers {way} {who}")]
    if loss.nothing_pids:
        first, last = loss.nothing_pids[0], loss.nothing_pids[-1]
        is_range = last - first + 1 == len(loss.nothing_pids)
        others = f"{first} to {last} have" if is_range else "the others have"
        others = f"process {first} has" if first == last else others
        return [_Phrase(f", by {who}"), _Phrase(f", while {others} nothing", 2)]
    return [_Phrase(f", by {who}")]


def _how_often(run: Run, loss: Loss) -> list[_Phrase]:
    if loss.kind == kinds.STEPS:
        steps = fmt.counted(loss.count, "superstep")
        return [_Phrase(f", where {steps} follow with next to nothing between")]
    if loss.kind == kinds.MESSAGES:
        return [_Phrase(f", where {fmt.counted(loss.count, 'message')} take longer than the work")]
    if loss.habit == kinds.ONE_OFF:
        inside = " of a sub-group" if loss.group and not run.is_interleaved else ""
        return [_Phrase(f", most of it in superstep {loss.superstep}", 3), _Phrase(inside, 5)]
    if not loss.count or loss.passes < 2:
        return []
    often = f"{loss.count} of " if loss.count < loss.passes else ""
    phrases = [_Phrase(f" in {often}{fmt.counted(loss.passes, 'superstep')}", 4)]
    if loss.change_s:
        first, last = loss.change_s
        amount = _two(fmt.seconds(first), "to", fmt.seconds(last))
        phrases.append(_Phrase(f", {'growing' if last > first else 'shrinking'} from {amount}", 5))
    return phrases


def _two(first: str, word: str, second: str) -> str:
    """Return two amounts with a word between them; a unit that both have is named once."""
    number, _, unit = first.partition(" ")
    return f"{number if unit == second.partition(' ')[2] else first} {word} {second}"


def _why(loss: Loss) -> str:
    if loss.faults:
        return f"for {fmt.counted(loss.faults, 'page fault')}: memory that is new each time"
    if loss.kind == kinds.PICKLING:
        size = fmt.size(loss.total_bytes)
        if loss.part == "ends":
            return f"{size} of results pickled: let each process write its own to a file"
        return f"{size} of objects pickled: send arrays"
    if loss.part == "transfer_imbalance":
        return loss.kind if loss.habit == kinds.FIXED else f"{loss.habit} {loss.kind}"
    return f"{loss.habit} straggler" if loss.part == "imbalance" else loss.kind


def _why_more(loss: Loss) -> Iterator[_Phrase]:
    if loss.kind == kinds.BLOCKED:
        yield _Phrase(": asleep, or at a disk or lock", 5)
    if loss.sharing:
        yield _Phrase(f" in a branch of {'its' if loss.sharing == 1 else 'their'} own", 2)
    if loss.late:
        yield _Phrase(f", {loss.late}", 2)


def _of_cores(run: Run, share: float) -> str:
    cores = run.meta.get("cores")
    where = f"one of {cores} cores" if isinstance(cores, int) and cores > 1 else "the core"
    why = f"{run.nprocs} processes are more than the cores"
    if isinstance(cores, int) and run.nprocs <= cores:  # those of all hosts together
        why = "others use the cores, too, or one host has too few"
    elif isinstance(cores, int) and share > 1 - cores / run.nprocs / 2:
        # Alone they would have cores / nprocs of the time a core, and have less than half of it.
        why += ", and others use them, too"
    return f" waiting for {where}, since {why}: no imbalance of the program"


def _mended(loss: Loss, main_s: float) -> str:
    """Return what the run would take without a loss; other losses may hide it.

    Of ways that bring the same, the first is told.
    """
    if not loss.mended_ns:
        return ""
    worth = {how: ns for how, ns in loss.mended_ns.items() if _saves_much(ns / 1e9, loss, main_s)}
    if not worth:
        return "to mend this alone would save little, since other processes take as long"
    whole = fmt.seconds(loss.elapsed_s)
    every = {how: fmt.seconds(loss.elapsed_s - ns / 1e9) for how, ns in worth.items()}
    takes = {how: seconds for how, seconds in every.items() if seconds != whole} or every
    (first, takes_first), *others = takes.items()
    is_also = first != mends.AS_OTHERS and takes.get(mends.AS_OTHERS) == takes_first
    also = f" or {mends.AS_OTHERS}" if is_also else ""
    instead = "" if whole == fmt.seconds(main_s) else f" instead of {whole}"
    text, told = f"{first}{also} the run would take {takes_first}{instead}", {takes_first}
    for how, seconds in others:
        if seconds not in told:
            text += f", {how} {seconds}"
            told.add(seconds)
    return text


def _figures(seconds: float, whole_s: float) -> str:
    """Return an amount as a part of the time in ``main``; figures of one unit name it once."""
    figures = _two(fmt.seconds(seconds), "of", fmt.seconds(whole_s))
    return f"{figures} ({_percent(seconds / whole_s if whole_s else 0.0)})"
