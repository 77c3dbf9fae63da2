"""The verdict on a run: at most five sentences that name what is lost, and who loses it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler.hosts import ProcessNames
from bsplib.profiler.kinds import (
    COMM,
    COMP,
    CORE,
    FAN_IN,
    FAN_OUT,
    FIXED,
    GROUPS,
    ONE_OFF,
    ROTATING,
    STEPS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.kinds import LossEntry
    from bsplib.profiler.losses import Ledger, Loss

MANY_STEPS = 5
"""A place that is passed fewer times does not have too many supersteps."""
LEAST_SHARE = 0.05
"""A loss that is a smaller share of the cost of the run has no sentence."""
MOST_SENTENCES = 5
BALANCED_SHARE = 0.1
"""A run that loses less than this share, and nowhere ``LEAST_SHARE``, is balanced."""
MOST_OF_IT = 0.5
"""Share of the losses that lie below a function which is named for them."""
BALANCED, SPREAD = "balanced", "spread"
"""Kinds of the sentence of a run in which no place loses ``LEAST_SHARE``."""

BALANCED_TEXT = (
    "Balanced: {lost} of {cost} ({share}) are lost in waiting for other processes, and no place "
    "in the program loses 5% or more."
)
"""Sentence about a run that loses little."""
SPREAD_TEXT = (
    "{lost} of {cost} ({share}) are lost in waiting for other processes, spread over many places "
    "of which none loses 5%; half of it or more is lost below {who}."
)
"""Sentence about a run that loses much, but nowhere much of it."""
NOTHING = "Nothing was recorded that takes time."
"""Sentence about a run without costs."""


class Sentence(NamedTuple):
    """A sentence of a verdict."""

    text: str
    seconds: float
    """What the sentence is about, in seconds."""
    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``, ``BALANCED`` or ``SPREAD``."""
    node: str | None = None
    """Id of the cost centre; None if the sentence is about the whole run."""
    superstep: int | None = None
    """Its number in the root group, where the sentence is about one superstep."""


class Verdict(NamedTuple):
    """What is wrong with the balance of a run."""

    balanced: bool
    sentences: tuple[Sentence, ...]
    """The greatest loss first; waiting for a core is last, since it is no imbalance."""

    def __str__(self) -> str:
        return "\n".join(sentence.text for sentence in self.sentences)


def judge(ledger: Ledger) -> Verdict:
    """Return the verdict on the run of a ledger."""
    cost_s = ledger.cost_s
    if cost_s == 0:
        return Verdict(True, (Sentence(NOTHING, 0.0, BALANCED),))
    steps = [loss for loss in ledger.losses if loss.kind == STEPS]
    core = [loss for loss in ledger.losses if loss.kind == CORE]
    rest = [loss for loss in ledger.losses if loss.kind not in (STEPS, CORE)]
    about = [sentence(loss, cost_s) for loss in rest]
    about += [_about_steps(steps, cost_s)] if steps else []
    about.sort(key=lambda each: -each.seconds)
    last = _worth([sentence(loss, cost_s) for loss in core], cost_s)
    first = _worth(about, cost_s)[: MOST_SENTENCES - len(last)] or [_about_the_run(ledger)]
    return Verdict(first[0].kind == BALANCED, (*first, *last))


def _worth(sentences: Sequence[Sentence], cost_s: float) -> list[Sentence]:
    return [each for each in sentences if each.seconds >= LEAST_SHARE * cost_s]


def _about_steps(steps: Sequence[Loss], cost_s: float) -> Sentence:
    """Return one sentence for all places with too many supersteps: they have one cause."""
    seconds, count = sum(loss.seconds for loss in steps), sum(loss.count for loss in steps)
    return sentence(replace(steps[0], seconds=seconds, count=count), cost_s, places=len(steps))


def _about_the_run(ledger: Ledger) -> Sentence:
    """Return the sentence about a run in which no place loses much."""
    cost_s, lost_s = ledger.cost_s, ledger.lost_s
    if lost_s < BALANCED_SHARE * cost_s:
        return Sentence(filled(BALANCED_TEXT, lost_s, cost_s), lost_s, BALANCED)
    chain = ledger.path()
    lowest = chain[0]
    for depth in range(1, len(chain)):
        if ledger.onward(chain[:depth])[chain[depth]].lost_s < MOST_OF_IT * lost_s:
            break
        lowest = chain[depth]
    name = fmt.visible(ledger.callgraph.graph.nodes[lowest]["node"].name)
    return Sentence(filled(SPREAD_TEXT, lost_s, cost_s, name), lost_s, SPREAD, lowest)


def sentence(loss: Loss, cost_s: float, *, places: int = 1) -> Sentence:
    """Return the sentence about a loss of a run of this cost.

    Args:
        loss: the loss; where it is summed over several places, its chain leads to the first.
        cost_s: the cost of the run.
        places: number of these places.
    """
    node = loss.chain[-1] if loss.chain else None
    superstep = loss.superstep if loss.group == 0 else None
    text = filled(loss.text, loss.seconds, cost_s, loss.who, loss.count, places)
    return Sentence(text, loss.seconds, loss.kind, node, superstep)


def filled(  # what a sentence consists of
    template: str, seconds: float, cost_s: float, who: str = "", count: int = 0, places: int = 1
) -> str:
    """Fill the figures into the template of a sentence, by ``str.format``.

    Args:
        template: a text with some of ``{lost}``, ``{amount}`` (the same, always with its
            unit), ``{cost}``, ``{share}``, ``{who}``, ``{count}`` and ``{most}``.
        seconds: for ``{lost}`` and ``{amount}``.
        cost_s: the whole cost of the run.
        who: the processes of a sub-group.
        count: a number of supersteps.
        places: at how many places they end.
    """
    amount, cost = fmt.seconds(seconds), fmt.seconds(cost_s)
    number, _, unit = amount.partition(" ")
    return template.format(
        lost=number if unit == cost.partition(" ")[2] else amount,
        amount=amount,
        cost=cost,
        share=f"{100 * seconds / cost_s:.0f}%",
        who=who,
        count="1 superstep" if count == 1 else f"{count} supersteps",
        most=", most of them" if places > 1 else "",
    )


# -- templates ------------------------------------------------------------------------------------


def template(entry: LossEntry, callgraph: CallGraph) -> str:
    """Return the sentence about a loss, in which words in braces stand for figures.

    These are the words of :func:`filled`; braces in names from the trace are doubled.
    """
    where = _where(entry.chain, callgraph)
    name = _escaped(ProcessNames(callgraph.run)(entry.pids)) if entry.pids else ""
    if entry.source == COMP:
        return _of_computation(entry, where, name)
    if entry.source == COMM:
        return _of_bytes(entry, where, name)
    if entry.kind == GROUPS:
        text = f"waiting for the sub-group of {{who}}, which costs most, {where} ({GROUPS})"
        return f"{_LOST} ({{share}}) are lost {text}; equal sub-groups would save it."
    text = f"for the end of {{count}}{{most}} {where}, more than for their work ({STEPS})"
    return f"{{lost}} of {{cost}} ({{share}}) are spent {text}; half as many would save half of it."


_LOST = "{lost} of {cost}"
_EVEN = "an even share would save it"
"""What balance would save: the loss is measured against an even share of the same work."""


def _of_computation(entry: LossEntry, where: str, name: str) -> str:
    if entry.habit == ROTATING:
        text = f"waiting for another process each time {where} (rotating straggler)"
    elif entry.habit == ONE_OFF:
        once = f"most of it in {_superstep(entry)} for {name}"
        text = f"waiting {where}, {once} (one-off straggler)"
    else:
        text = f"waiting for {name} {where} (fixed straggler{_branch(entry)})"
    return f"{_LOST} ({{share}}) are lost {text}; {_EVEN}."


def _of_bytes(entry: LossEntry, where: str, name: str) -> str:
    way = {FAN_IN: "to", FAN_OUT: "from"}.get(entry.kind, "to and from")
    who = "another process each time" if entry.habit == ROTATING else name
    kind = entry.kind if entry.habit == FIXED else f"{entry.habit} {entry.kind}"
    once = f", most of it in {_superstep(entry)}" if entry.habit == ONE_OFF else ""
    text = f"waiting for the transfers {way} {who} {where}{once} ({kind})"
    return f"{_LOST} ({{share}}) are lost {text}; even transfers would save it."


def _branch(entry: LossEntry) -> str:
    if not entry.sharing:
        return ""
    who = "it takes" if entry.sharing == 1 else f"{entry.sharing} of the processes take"
    return f" in a branch that only {who}"


def _superstep(entry: LossEntry) -> str:
    return f"superstep {entry.superstep}" + (" of a sub-group" if entry.group else "")


def _where(chain: tuple[str, ...], callgraph: CallGraph) -> str:
    """Return the function, line and caller of a cost centre."""
    nodes = callgraph.graph.nodes
    names = [_escaped(fmt.visible(nodes[node]["node"].name)) for node in chain[-3:]]
    if len(names) == 1:
        return f"in {names[0]}"
    *callers, function, leaf = names
    called = f", called by {callers[0]}" if callers else ""
    return f"in {function} ({leaf}){called}"


def _escaped(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")


def waiting_template(nprocs: int, cores: object) -> str:
    """Return the sentence about waiting for a core."""
    where = f"one of {cores} cores" if isinstance(cores, int) and cores > 1 else "the core"
    why = f"{nprocs} processes are more than the cores"
    if isinstance(cores, int) and nprocs <= cores:  # those of all hosts together
        why = "others use the cores, too, or one host has more processes than cores"
    return (
        f"Each process waited {{amount}} on average for {where}, beside the cost of "
        f"{{cost}}, since {why}; this is no imbalance of the program."
    )
