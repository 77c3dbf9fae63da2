"""Of several deaths on several hosts, that with the best evidence is the reason of the others."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from bsplib.backends.mpi import control
from bsplib.backends.mpi import job as jobs
from bsplib.backends.mpi.hub import News
from bsplib.backends.mpi.installations import Starter

LOST = News(0, None, "was lost", 1)
ABORTED = News(1, control.Message(control.DIED, control.ENDED.pack(-signal.SIGTERM, 1)))
KILLED = News(2, control.Message(control.DIED, control.ENDED.pack(-signal.SIGKILL, 1)))


class FakeHub:
    """Tells of deaths, one at a time, on a clock of its own."""

    hosts = {0: "a", 1: "b", 2: "b"}  # noqa: RUF012  # nobody changes it

    def __init__(self):
        self.now = 0.0
        self.to_come = []

    def wait(self, seconds):
        if self.to_come:
            return [self.to_come.pop(0)]
        self.now += seconds
        return []


@pytest.mark.parametrize(
    ("news", "reason"),
    [
        ([LOST], 0),
        ([LOST, KILLED], 2),
        ([ABORTED, LOST], 0),
        ([ABORTED, LOST, KILLED], 2),
    ],
)
def test_the_death_with_the_best_evidence_is_the_reason(monkeypatch, news, reason):
    hub = FakeHub()
    hub.to_come += news
    monkeypatch.setattr(jobs, "Hub", lambda size: hub)
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: hub.now))
    job = jobs.Job(3, Starter(()))
    assert [*job.news(60)] == [reason]
    assert hub.to_come == []
