"""Stored traces: what is known of them by hand, and what the commands have said of them before."""

from __future__ import annotations

from functools import cache

import pytest

from bsplib.profiler.verdict import MOST_WORDS
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace, write_trace

from .stored.programs import STORED
from .stored.said import FOLDER, as_text, document_of, said_of

each = pytest.mark.parametrize("name", STORED)


@cache
def document(name):
    return document_of(FOLDER / f"{name}.bsp")


def value_at(found, place):
    """Return what stands at a place: names of keys, of nodes, or numbers, with / between."""
    for part in place.split("/"):
        if isinstance(found, list):
            named = [one for one in found if isinstance(one, dict) and one.get("name") == part]
            found = found[int(part)] if part.isdigit() else named[0]
        elif part == "starts":
            return found.partition(":")[0]
        else:
            found = found[part]
    return found


@each
def test_what_is_known_by_hand_of_a_trace_is_reported(name):
    run = document(name)["runs"][-1]
    known = STORED[name].facts
    found = {place: value_at(run, place) for place in known}
    assert found == {
        place: pytest.approx(value) if isinstance(value, float) else value
        for place, value in known.items()
    }


@each
def test_the_account_of_a_trace_adds_up(name):
    for run in document(name)["runs"]:
        account = run["account"]
        spent = [sum(each) for each in zip(*account["by_process_ns"].values(), strict=True)]
        assert spent == [account["elapsed_ns"]] * run["nprocs"]
        leaves = [node for node in run["nodes"] if node["kind"] == "cost_centre"]
        assert sum(node["loss_s"] for node in leaves) == pytest.approx(run["loss_s"])
        assert sum(node["time_s"] for node in leaves) == pytest.approx(run["time_s"])


@each
def test_no_sentence_about_a_trace_is_long(name):
    for run in document(name)["runs"]:
        for loss in (*run["losses"], *run["verdict"]):
            before, _, _ = loss["text"].partition("; ")
            assert len(before.split()) <= MOST_WORDS


@each
def test_the_commands_say_of_a_trace_what_they_said_before(name):
    before = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert as_text(said_of(FOLDER / f"{name}.bsp")) == before, (
        "python -m tests.profiler.stored writes the new texts; git diff shows what a user sees"
    )


def test_each_file_is_of_a_stored_run():
    assert {path.stem for path in FOLDER.iterdir()} == STORED.keys()


@each
def test_a_stored_trace_is_that_of_its_program(name, tmp_path):
    write_trace(tmp_path / "again.bsp", Trace(STORED[name].make()))
    stored, again = read_trace(FOLDER / f"{name}.bsp").runs, read_trace(tmp_path / "again.bsp").runs
    for one, other in zip(stored, again, strict=True):
        assert one.stacks == other.stacks
        assert one.records.tolist() == other.records.tolist()
        assert one.traffic.tolist() == other.traffic.tolist()
