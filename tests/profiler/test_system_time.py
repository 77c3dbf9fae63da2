"""What others or own threads took of the time of a run is told where it is more than 1%."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.profile import Profile
from bsplib.profiler.report import print_report
from bsplib.profiler.report.document import document
from bsplib.recording.records import NOT_MEASURED, Trace
from bsplib.webui.services import describe_verdict
from tests.commands import printed_by
from tests.recordings import record_run

US = 1000


@pytest.fixture
def profiled(script):
    """Return the profile of a run of 100 us on two cores with so much steal, and such metadata."""

    def profiled(steal_ns=NOT_MEASURED, **meta):
        program = script(2)
        program.step("main", w=100 * US)
        run = program.run(meta={"cores": 2, "backend": "shm"} | meta)
        (profile,) = Profile(Trace((replace(run, steal_ns=steal_ns),))).runs
        return profile

    return profiled


TOLD = {
    "steal": (
        {"steal_ns": 6 * US},
        6e-6,
        "Other virtual machines took 6.00 µs of 200 µs of 2 cores (3%, steal): this is in "
        "computation, blocked or unexplained.",
    ),
    "own_threads": (
        {"own_threads_ns": [0, 50 * US]},
        50e-6,
        "50.0 µs of 200 µs of 2 processes (25%) passed in waiting for own threads, which is "
        "computation.",
    ),
}


@pytest.mark.parametrize("what", TOLD)
def test_one_percent_or_more_has_a_sentence_in_the_report_and_on_the_page(profiled, what):
    made, seconds, sentence = TOLD[what]
    profile = profiled(**made)
    assert sentence in printed_by(print_report, [profile]).splitlines()
    assert sentence in describe_verdict(book_graph(profile.callgraph)).values()
    (run,) = document([profile])["runs"]
    assert run[f"{what}_s"] == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("what", "made", "seconds"),
    [
        ("steal", {"steal_ns": 2 * US}, 2e-6),
        ("steal", {}, None),
        ("steal", {"steal_ns": 6 * US, "backend": "sim"}, None),
        ("steal", {"steal_ns": 6 * US, "cores": None}, 6e-6),
        ("own_threads", {"own_threads_ns": [0, US]}, 1e-6),
        ("own_threads", {"own_threads_ns": [0, 0]}, 0.0),
        ("own_threads", {"own_threads_ns": "x"}, None),
        ("own_threads", {"own_threads_ns": [None, 50 * US]}, None),
    ],
)
def test_what_is_little_or_unknown_has_no_sentence(profiled, what, made, seconds):
    profile = profiled(**made)
    told = describe_verdict(book_graph(profile.callgraph))
    assert told["steal"] == told["threads"] == ""
    (run,) = document([profile])["runs"]
    assert run[f"{what}_s"] == (None if seconds is None else pytest.approx(seconds))


def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def lets_a_thread_compute(bsp):
    for _ in range(3):
        if bsp.pid == 1:
            thread = threading.Thread(target=spend, args=(0.03,))
            thread.start()
            thread.join()
        bsp.sync()


@pytest.mark.lengthy
def test_a_process_that_waits_for_its_own_threads_is_no_blocked_one(tmp_path):
    path = tmp_path / "run.bsp"
    run = record_run(path, lets_a_thread_compute, nprocs=2, backend="shm")
    at = run.records["pid"] == 1
    assert run.records["comp_cpu"][at].sum() >= 80_000_000
    assert run.records["comp_cpu"][~at].sum() < 80_000_000
    none, waited = run.meta["own_threads_ns"]
    assert none < 40_000_000 < waited
