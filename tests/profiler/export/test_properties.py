"""What holds for the exports of any run, with recursion, sub-groups and branches."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bsplib.profiler.export import chrome, speedscope
from bsplib.profiler.export.pprof import VALUES, weights_of
from bsplib.profiler.export.table import Request
from bsplib.recording.records import Trace
from tests.drawn import examples
from tests.profiler.test_properties import programs

pytestmark = pytest.mark.lengthy

# On a busy machine an example may take long: that is no fault.
few = examples(12, suppress_health_check=[HealthCheck.too_slow])

METRICS = {"computation": "comp", "communication": "comm", "idle": "idle", "h": "h"}


@pytest.fixture(scope="module")
def requests(script):
    """Requests of any run."""
    return programs(script, one_stack=False).map(lambda made: Request(Trace((made.run(),))))


def written(form, request):
    file = io.BytesIO()
    form.write(request, file)
    return json.loads(file.getvalue())


@few
@given(st.data())
def test_samples_of_processes_and_stacks_add_up_to_the_pies_of_every_node(requests, data):
    request = data.draw(requests)
    callgraph, nprocs = request.profile.callgraph, request.profile.run.nprocs
    origins, pids, values = weights_of(callgraph, request.profile.book().book)
    for node, cost in callgraph.graph.nodes(data="cost"):
        under = [origin in callgraph.passing[node] for origin in origins]
        for column, (name, _) in enumerate(VALUES):
            if name not in METRICS:
                continue
            pairs = zip(pids[under], values[under, column], strict=True)
            sums = Counter()
            for pid, value in pairs:
                sums[int(pid)] += int(value)
            unit = 1 if name == "h" else 1e9
            pie = [round(unit * part) for part in cost[METRICS[name]].pie]
            assert [sums[pid] for pid in range(nprocs)] == pie


@few
@given(st.data())
def test_losses_of_processes_and_stacks_add_up_to_the_loss_of_the_run(requests, data):
    request = data.draw(requests)
    _, pids, values = weights_of(request.profile.callgraph, request.profile.book().book)
    names = [name for name, _ in VALUES]
    total = values[:, names.index("loss")].sum()
    assert total == pytest.approx(1e9 * request.profile.book().main.loss_s, abs=len(pids))


@few
@given(st.data())
def test_the_phases_of_a_trace_of_events_add_up_and_nest(requests, data):
    request = data.draw(requests)
    events = [e for e in written(chrome, request)["traceEvents"] if e["ph"] == "X"]
    sums, open_until = Counter(), {}
    for event in sorted(events, key=lambda e: (e["tid"], e["ts"], -e["dur"])):
        start, duration = round(1000 * event["ts"]), round(1000 * event["dur"])
        if event["cat"] == "phase":
            sums[event["tid"], event["name"]] += duration
        around = open_until.setdefault(event["tid"], [])
        while around and around[-1] <= start:
            around.pop()
        assert not around or start + duration <= around[-1]
        around.append(start + duration)
    whole = request.profile.callgraph.graph.nodes[request.profile.callgraph.root]["cost"]
    for pid in range(request.profile.run.nprocs):
        for phase, metric in list(METRICS.items())[:3]:
            assert sums[pid, phase] == round(1e9 * whole[metric].pie[pid])


@few
@given(st.data())
def test_the_times_of_a_process_add_up_to_its_course(requests, data):
    request = data.draw(requests)
    whole = request.profile.callgraph.graph.nodes[request.profile.callgraph.root]["cost"]
    _, *profiles = written(speedscope, request)["profiles"]
    for pid, profile in enumerate(profiles):
        pies = [1e9 * whole[metric].pie[pid] for metric in ("comp", "comm", "idle")]
        assert sum(profile["weights"]) == round(sum(pies))
