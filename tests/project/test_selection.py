"""What each command runs is what tests/selection.py says; the reasons stand there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from ..selection import usual_places

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # all files are collected

DESCRIBE = """
import json, sys
import pytest

def described(item):
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    place = [parameters.get("backend"), parameters.get("nprocs")]
    own = {
        name: id(value) for name, value in parameters.items() if name not in ("backend", "nprocs")
    }
    return {
        "test": item.nodeid.partition("[")[0],
        "place": place,
        "own": own,
        "marks": [mark.name for mark in item.iter_markers()],
    }

class Collected:
    def pytest_collection_finish(self, session):
        self.every = list(session.items)
        self.chosen = {"all": [item.nodeid for item in self.every]}
        for option in ("usual", "quick", "core"):
            session.config.option.all = False
            session.config.option.quick = option == "quick"
            session.config.option.core = option == "core"
            items = list(self.every)
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=items
            )
            self.chosen[option] = [item.nodeid for item in items]

collected = Collected()
status = pytest.main(["-qq", "--all", "--collect-only", "-p", "no:cacheprovider"], [collected])
assert status == 0, status
cases = {item.nodeid: described(item) for item in collected.every}
print()
print(json.dumps([cases, collected.chosen, sys.modules["tests.drawn"].TIMES]))
"""
"""Collects once, and asks with each option what is left of it."""


@pytest.fixture(scope="module")
def described():
    environment = {name: value for name, value in os.environ.items() if name != "BSP_EXAMPLES"}
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def collected(described):
    cases, chosen, _ = described
    return {option: {name: cases[name] for name in names} for option, names in chosen.items()}


@pytest.fixture
def every(collected):
    return collected["all"]


@pytest.fixture
def usual(collected):
    return collected["usual"]


@pytest.fixture
def quick(collected):
    return collected["quick"]


@pytest.fixture
def core(collected):
    return collected["core"]


def by_test(cases):
    found = {}
    for case in cases.values():
        found.setdefault(case["test"], []).append(case)
    return found


def what_is_alike(case):
    return case["test"], case["place"][0], *sorted(case["own"].items())


def is_real(case):
    return case["place"][0] not in (None, "sim")


def is_on_an_mpi(case):
    return str(case["place"][0]).startswith("mpi-")


def pairs_of(case):
    return set(combinations([("place", *case["place"]), *sorted(case["own"].items())], 2))


def test_each_command_runs_a_part_of_what_the_next_one_runs(quick, core, usual, every):
    assert usual.keys() < every.keys()
    assert by_test(quick).keys() < by_test(usual).keys() > by_test(core).keys()


def test_make_test_all_draws_twice_as_many_examples(described):
    _, _, times = described
    assert times == 2


def test_only_what_is_slow_or_starts_an_mpi_is_left_to_make_test_all_altogether(usual, every):
    assert not any("slow" in case["marks"] for case in usual.values())
    usual_tests = by_test(usual)
    for test, cases in by_test(every).items():
        if test not in usual_tests:
            assert all("slow" in case["marks"] or takes_turns(case) for case in cases)


def test_there_are_1_or_3_real_processes_but_where_a_test_is_marked(usual, every):
    counts = {}
    for case in every.values():
        counts.setdefault(what_is_alike(case), set()).add(case["place"][1])
    found = set()
    for name, case in usual.items():
        nprocs = case["place"][1]
        if is_real(case) and nprocs is not None and "every_count" not in case["marks"]:
            found.add(nprocs)
            alike = counts[what_is_alike(case)]
            assert nprocs in (1, 3) or (nprocs == min(alike) and alike.isdisjoint({1, 3})), name
    assert found > {1, 3}


def test_one_mpi_is_run_with_3_processes_where_a_test_is_marked(usual, every):
    def on_an_mpi(cases):
        return [case for case in cases.values() if is_on_an_mpi(case)]

    assert {tuple(case["place"]) for case in on_an_mpi(usual)} == {("mpi-mpich", 3)}
    assert all("mpi" in case["marks"] for case in on_an_mpi(usual))
    assert len({case["test"] for case in on_an_mpi(usual)}) == len(on_an_mpi(usual)) > 100
    places = {tuple(case["place"]) for case in on_an_mpi(every)}
    assert places >= {(f"mpi-{mpi}", p) for mpi in ("mpich", "openmpi") for p in (1, 2, 3, 4, 8)}


def takes_turns(case):
    """Whether it is a case of a test that runs on one of both MPIs."""
    return "mpi" in case["own"] and "lengthy" in case["marks"]


def test_of_each_file_one_lengthy_test_of_mpi_runs_and_both_mpis_have_their_share(usual, every):
    def files(cases):
        return Counter(
            case["test"].partition("::")[0] for case in cases.values() if takes_turns(case)
        )

    may_run = {name: case for name, case in every.items() if "slow" not in case["marks"]}
    tests = {(case["test"], "openmpi" in name) for name, case in usual.items() if takes_turns(case)}
    assert files(usual).keys() == files(may_run).keys()
    assert len(tests) == len(files(usual)) > 10
    shares = Counter(installation for _, installation in tests)
    assert all(share > 0.3 * len(tests) for _, share in shares.most_common(2)), shares


def test_few_tests_are_marked_to_take_all_numbers_of_real_processes(usual, every):
    def places_of_marked(cases):
        return {
            (case["test"], *case["place"])
            for case in cases.values()
            if "every_count" in case["marks"] and not is_on_an_mpi(case)
        }

    places = places_of_marked(every)
    assert places_of_marked(usual) == places
    assert {nprocs for _, backend, nprocs in places if backend != "sim"} == {1, 2, 3, 4, 8}
    assert len({test for test, _, _ in places}) <= 20


def test_no_case_is_left_out_before_it_is_made_that_would_be_run(usual, every):
    run_at = {
        test: {tuple(case["place"]) for case in cases} for test, cases in by_test(usual).items()
    }
    for test, cases in by_test(every).items():
        places = {tuple(reversed(case["place"])): None for case in cases if all(case["place"])}
        marked = "every_count" in cases[0]["marks"]
        made = {(backend, nprocs) for nprocs, backend in usual_places(places, every_count=marked)}
        assert {place for place in run_at.get(test, ()) if all(place)} <= made, test
        assert made <= {tuple(reversed(place)) for place in places}


@pytest.mark.parametrize("options", [[], ["--quick"], ["--core"]], ids=str)
def test_what_a_command_runs_is_the_same_where_other_cases_are_not_made(collected, options):
    file = "tests/bsplib/test_put.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, file],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=500,
    )
    names = {line for line in done.stdout.splitlines() if line.startswith(f"{file}::")}
    (option,) = options or ["usual"]
    chosen = collected[option.removeprefix("--")]
    assert names == {name for name in chosen if name.startswith(f"{file}::")}


def may_be_a_further_error(case):
    """Whether it is one of the real cases of a test that expects an error, beside virtual ones."""
    return is_real(case) and "error" in case["marks"] and "core" not in case["marks"]


def test_errors_have_one_real_case_on_each_backend_beside_all_virtual_ones(usual, every):
    usual_tests, fewer = by_test(usual), 0
    for test, cases in by_test(every).items():
        kept = usual_tests.get(test, [])
        backends = {case["place"][0] for case in kept}
        if "sim" not in backends or not may_be_a_further_error({**cases[0], "place": ["shm", 1]}):
            continue
        real = [case["place"][0] for case in kept if is_real(case)]
        assert len(real) == len(set(real)), test
        assert set(real) == {
            case["place"][0] for case in cases if is_real(case) and not is_on_an_mpi(case)
        }, test
        fewer += len(real) < sum(is_real(case) for case in cases)
    assert fewer > 50


def may_run(cases, places):
    """Those of all cases of a test of which make test has to run enough."""
    for case in cases:
        if is_on_an_mpi(case) or {"slow", "browser"}.intersection(case["marks"]):
            continue
        if not takes_turns(case) and not may_be_a_further_error(case) and case["place"] in places:
            yield case


def values_of(case):
    return {(case["place"][0], *value) for value in case["own"].items()}


def test_the_values_of_every_two_parameters_meet_in_short_tests_on_virtual_processors(usual, every):
    all_cases = by_test(every)
    for test, cases in by_test(usual).items():
        met = set().union(*map(pairs_of, cases))
        for case in may_run(all_cases[test], [case["place"] for case in cases]):
            if not is_real(case) and "lengthy" not in case["marks"]:
                assert pairs_of(case) <= met, test


def test_each_value_is_tried_on_each_backend_by_several_processes(usual, every):
    all_cases = by_test(every)
    for test, cases in by_test(usual).items():
        several = [case for case in cases if not is_real(case) or case["place"][1] != 1]
        met = set().union(*map(values_of, several))
        for case in may_run(all_cases[test], [case["place"] for case in several]):
            assert values_of(case) <= met, test


def test_a_browser_is_used_once_for_each_test(usual, every):
    in_a_browser = [case["test"] for case in usual.values() if "browser" in case["marks"]]
    assert len(in_a_browser) == len(set(in_a_browser)) > 100
    assert len(in_a_browser) < sum("browser" in case["marks"] for case in every.values())


def test_quick_takes_one_case_of_a_test_and_few_real_processes(quick):
    virtual = [case["test"] for case in quick.values() if not is_real(case)]
    real = [
        (name.partition("::")[0], case["place"][0]) for name, case in quick.items() if is_real(case)
    ]
    assert len(set(virtual)) == len(virtual) > 10 * len(real)
    assert len(set(real)) == len(real) > 10


def test_quick_takes_tests_of_every_room(quick, every):
    rooms = {name.split("/")[1] for name in every}
    assert {name.split("/")[1] for name in quick} == rooms - {"typing"}  # it runs long checkers


def test_the_interpreted_core_has_one_real_and_one_virtual_case_of_what_is_marked(core):
    assert all("core" in case["marks"] for case in core.values())
    kinds = [(case["test"], is_real(case)) for case in core.values()]
    assert len(set(kinds)) == len(kinds) > 500
    assert {is_real(case) for case in core.values()} == {True, False}


def test_the_interpreted_core_runs_random_programs(core):
    drawn = [case["test"] for case in core.values() if "hypothesis" in case["marks"]]
    assert any("real_processes" in test for test in drawn)
    assert any("virtual_processors" in test for test in drawn)


@pytest.mark.parametrize(
    "targets",
    [
        ["test-runtime-1", "test-runtime-2", "test-rooms", "test-pages"],
        ["test-quick-runtime", "test-quick-rooms"],
    ],
    ids=["make test", "make test-quick"],
)
def test_every_file_of_tests_is_run_once(targets):
    done = subprocess.run(
        ["make", "--dry-run", "--assume-old=.venv/.installed", *targets],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=500,
    )
    started = [line.split() for line in done.stdout.splitlines() if "pytest" in line]
    given = [ROOT / word for words in started for word in words[1:] if word != "--quick"]
    files = [
        file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])
    ]
    assert sorted(files) == sorted((ROOT / "tests").rglob("test_*.py"))
