"""Where an MPI is not there or does not start, a sentence says so."""

from __future__ import annotations

import os
from importlib import metadata

import pytest

from benchmarks import mpi
from benchmarks.mpi import MpiError, Ranks
from tests.mpi_installations import ALL, MPICH, OPEN_MPI, Mpi


def missing(name):
    raise metadata.PackageNotFoundError(name)


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Both seem to be installed."""
    monkeypatch.setattr(Mpi, "file", lambda _, name: tmp_path / name)
    return tmp_path


@pytest.fixture
def launcher(monkeypatch, installed):
    """Have the launcher be a shell that runs a line."""
    monkeypatch.setattr(mpi, "_LOOK_S", 0.05)

    def of(line):
        monkeypatch.setattr(Mpi, "command", lambda *_: ["sh", "-c", line])

    return of


def test_what_is_not_installed_is_named_with_the_way_out(monkeypatch):
    monkeypatch.setattr(metadata, "distribution", missing)
    sentence = mpi.absence()
    assert "mpi4py + Open MPI and mpi4py + MPICH" in sentence
    assert "pip install -e '.[bench]'" in sentence


@pytest.mark.parametrize("which", ALL)
def test_each_loads_its_own_library_by_its_own_launcher(which, installed):
    assert which.start(4, "a", "b")[0] == str(installed / which.launcher)
    assert which.start(4, "a", "b")[-4:] == ["-n", "4", "a", "b"]
    assert which.whole_environment(2)["MPI4PY_LIBMPI"] == str(installed / which.library)


def test_open_mpi_yields_with_more_ranks_than_cores_and_only_then(installed):
    cores = len(os.sched_getaffinity(0))
    name = "OMPI_MCA_mpi_yield_when_idle"
    assert name not in OPEN_MPI.whole_environment(cores)
    assert OPEN_MPI.whole_environment(cores + 1)[name] == "1"


def test_ranks_that_do_not_start_are_an_error_with_the_launchers_words(launcher):
    launcher("echo there is no room >&2; exit 3")
    with pytest.raises(MpiError, match="Open MPI on 2 ranks did not start: there is no room"):
        Ranks(OPEN_MPI, 2)


def test_a_launcher_that_says_nothing_is_quoted_with_its_status(launcher):
    launcher("exit 3")
    with pytest.raises(MpiError, match="its launcher ended with 3"):
        Ranks(MPICH, 2)


def test_ranks_that_do_not_come_are_waited_for_no_longer_than_it_says(launcher, monkeypatch):
    monkeypatch.setattr(mpi, "_START_S", 0.1)
    monkeypatch.setattr(mpi, "_END_S", 0.1)
    launcher("exec sleep 600")
    with pytest.raises(MpiError, match="did not start within"):
        Ranks(MPICH, 2)  # beyond the time limit of tests if it waited for the launcher
