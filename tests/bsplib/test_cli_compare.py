"""``bsp compare``: the table, the limits and the exit status."""

from __future__ import annotations

import json

import pytest

import bsplib
from tests.commands import run_bsp


def program(bsp, words, rounds):
    x = bsp.zeros(1000)
    for _ in range(rounds):
        bsp.charge(1e-3 * (1 + bsp.pid))
        bsp.put(0, range(words), x[:words])
        bsp.sync()


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Three traces: two runs, two runs that send more, and one run."""
    folder = tmp_path_factory.mktemp("traces")
    files = {name: folder / f"{name}.bsp" for name in ("before", "after", "single")}
    for name, words, runs in (("before", 10, 2), ("after", 20, 2), ("single", 10, 1)):
        for rounds in range(1, runs + 1):
            bsplib.run(program, words, rounds, nprocs=2, backend="sim", profile=files[name])
    return files


@pytest.fixture
def compare(traces):
    """Run the command on two of the traces."""

    def compare(before, after, *options):
        files = [str(traces.get(name, name)) for name in (before, after)]
        return run_bsp("compare", *files, *options)

    return compare


def test_a_trace_with_one_run_needs_no_title(compare):
    result = compare("single", "single")
    assert result.output.startswith("2.00 ms as before: h unchanged; supersteps unchanged\n")


def test_runs_of_one_trace_are_compared_by_their_numbers(compare):
    result = compare("before", "before", "--run", "1:2")
    assert "1 superstep more in program" in " ".join(result.output.split())
    result = compare("before", "before", "--run", "3")
    assert result.exit_code == 1
    assert result.output == "Error: there is no run 3 before; the trace has runs 1 to 2\n"


def test_limits_that_hold_leave_the_status_at_zero(compare):
    result = compare("before", "after", "--fail-on", "h>+100%,supersteps>+0")
    assert (result.exit_code, result.stderr) == (0, "")


def test_each_violated_limit_has_a_sentence_and_the_status_is_one(compare):
    result = compare("single", "after", "--fail-on", "h>+50%,supersteps>+0@program,time>1s")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "program: h-relation 320 B (80 B before), and h>+50% allows at most 120 B.",
        "program: supersteps 2 (1 before), and supersteps>+0@program allows at most 1.",
    ]


def test_of_several_runs_a_sentence_names_the_one_that_violates_a_limit(compare):
    result = compare("before", "after", "--fail-on", "supersteps>1")
    assert result.stderr == (
        "run 2, program: supersteps 2 (2 before), and supersteps>1 allows at most 1.\n"
    )


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ("h", "'h' is no limit; write it as in h>+1%, loss>+2ms, balance<90% or"),
        ("h>+1%@nobody", "no node is called 'nobody', as 'h>+1%@nobody' says"),
    ],
)
def test_limits_that_cannot_be_understood_have_a_status_of_their_own(compare, limits, error):
    result = compare("single", "single", "--fail-on", limits)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"Error: Invalid value for --fail-on: {error}")


def test_json_holds_every_comparison_and_limits_still_count(compare):
    result = compare("before", "after", "--json", "--fail-on", "h>+1%")
    assert result.exit_code == 1
    runs = json.loads(result.stdout)["runs"]
    assert [(run["run_before"], run["run_after"]) for run in runs] == [(1, 1), (2, 2)]
    whole = runs[1]["nodes"][0]
    assert (whole["before"]["h"], whole["after"]["h"]) == (160, 320)


def test_a_machine_times_both_runs_anew(compare):
    def time(*options):
        result = compare("single", "single", "--json", *options)
        return json.loads(result.stdout)["runs"][0]["nodes"][0]["after"]["time"]

    assert time("--machine", "shared-memory:g=1e-3", "--speed", "1x") > time() + 0.01


def test_rows_can_be_sorted_and_limited(compare):
    result = compare("single", "single", "--sort", "h", "--top", "1")
    assert "line" in result.output
    result = compare("single", "single", "--sort", "beauty")
    assert result.exit_code == 2
