"""What the repeats of a run say together, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bsplib.profiler.profile import RunProfile
from bsplib.profiler.repeats import Repeats, median, same_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsplib.webui.opened_runs import OpenRun

Json = dict[str, Any]


def describe_repeats(runs: Sequence[OpenRun], number: int, query: Mapping[str, str]) -> Json:
    """Return what the repeats of a run of a trace say together.

    Args:
        runs: the runs of the trace.
        number: the run that is shown.
        query: ``library``.

    Returns:
        ``runs`` (the repeats, by number) and ``median`` (the one of median time), ``least_s`` and
        ``greatest_s`` (of their elapsed times), ``account_s`` (the same of each part of the
        account), and ``intervals``: for each sentence of the run
        that is shown its position in the verdict, the least and greatest seconds, in how many
        runs it was found, whether these are most, and this as a text. Those that hold in most
        runs are first.
    """
    groups = same_runs([each.run.repeat for each in runs])
    mine = next(group for group in groups if number in group)
    profiles = {position: _profile(runs[position], position, query) for position in mine}
    times = [profiles[position].elapsed_s for position in mine]
    middle, shown = mine[median(times)], profiles[number]
    repeats = Repeats(profiles[middle], tuple(profiles.values()))
    told = shown.verdict().sentences
    intervals = [
        {
            "sentence": told.index(each.sentence),
            "least_s": each.least_s,
            "greatest_s": each.greatest_s,
            "found": each.found,
            "repeats": each.repeats,
            "is_sure": each.is_sure,
            "text": str(each),
        }
        for each in repeats.intervals(shown)
    ]
    return {
        "runs": mine,
        "median": middle,
        "least_s": min(times),
        "greatest_s": max(times),
        "account_s": {part: list(each) for part, each in repeats.account_s().items()},
        "intervals": intervals,
    }


def _profile(opened: OpenRun, number: int, query: Mapping[str, str]) -> RunProfile:
    """Return the profile of a run, with the call graph that the page has of it."""
    profile = RunProfile(opened.run, number + 1, library=opened.part(query).library)
    profile.__dict__["callgraph"] = opened.callgraph(opened.whole(query))
    return profile
