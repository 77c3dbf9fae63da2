"""Time that other virtual machines took during a run is shown where it is more than 1%."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.profiler.system_time import steal_sentence
from bsplib.recording.records import NOT_MEASURED, Trace
from bsplib.webui.services import describe_verdict

US = 1000
SENTENCE = (
    "Other virtual machines took 6.00 µs of 200 µs of 2 cores (3%, steal): this is in computation, "
    "blocked or unexplained."
)


@pytest.fixture
def stolen(script):
    """Return the profile of a run of 100 us on two cores with so much steal."""

    def stolen(steal_ns, **meta):
        program = script(2)
        program.step("main", w=100 * US)
        run = program.run(meta={"cores": 2, "backend": "shm"} | meta)
        (profile,) = Profile(Trace((replace(run, steal_ns=steal_ns),))).runs
        return profile

    return stolen


def test_steal_over_one_percent_has_a_sentence_in_the_report_and_on_the_page(stolen):
    profile = stolen(6 * US)
    console = Console(file=io.StringIO(), width=160)
    print_report([profile], console=console)
    assert SENTENCE in console.file.getvalue().splitlines()
    assert describe_verdict(book_graph(profile.callgraph))["steal"] == SENTENCE


@pytest.mark.parametrize(
    ("steal_ns", "meta", "seconds"),
    [
        (2 * US, {}, 2e-6),
        (NOT_MEASURED, {}, None),
        (6 * US, {"backend": "sim"}, None),
        (6 * US, {"cores": None}, 6e-6),
    ],
)
def test_little_or_unknown_steal_has_no_sentence(stolen, steal_ns, meta, seconds):
    profile = stolen(steal_ns, **meta)
    assert steal_sentence(profile.run) == ""
    (run,) = document([profile])["runs"]
    assert run["steal_s"] == (None if seconds is None else pytest.approx(seconds))
