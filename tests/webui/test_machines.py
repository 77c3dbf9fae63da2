"""The Machines that a page offers."""

from dataclasses import asdict

import pytest

from bsplib.machine import Machine, known_machines
from bsplib.webui.machines import describe_machines
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

HERE = Machine("here", "made up", g=1e-9, l=1e-6, speed=2e9)


@pytest.fixture
def machines():
    """The Machines for a run on a Machine, by name."""

    def machines(machine=HERE):
        made = Script(2)
        step(made, (frame("main", 1, 2),), 1e-3)
        found = describe_machines(run_of(made, machine=asdict(machine)))
        return {each["name"]: each for each in found}

    return machines


def test_all_machines_that_come_along_are_offered(machines):
    found = machines()
    assert list(found) == known_machines()
    shared = found["shared-memory"]
    assert (shared["g"], shared["l"], shared["rule"]) == (4.8e-10, 1.7e-6, "max")
    assert shared["title"] == "shared memory"
    assert shared["source"].startswith("measured on two cores")
    assert found["ibm-sp2-pvm"]["rule"] == "sum"


def test_what_a_machine_lacks_is_a_gap_with_a_sentence(machines):
    cray = machines()["cray-t3e-mpi"]
    assert (cray["l"], cray["ratio"]) == (None, None)
    assert cray["note"] == (
        "Its l is not known (a fit gave -2.11e-05 s): it counts as 0 unless it is set. "
        "Its speed is not known: it counts as that of the run unless it is set."
    )
    assert "(a fit" not in machines()["ibm-sp2-oxford-bsp"]["note"]


def test_the_machine_of_the_run_itself_is_as_fast_as_it_was(machines):
    here = Machine("shared memory", "made up", g=1e-9, l=1e-6)
    shared = machines(here)["shared-memory"]
    assert (shared["ratio"], shared["note"]) == (1.0, "")
