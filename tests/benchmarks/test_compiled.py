"""The programs in C that do the least possible print the seconds of a turn."""

import pytest

from benchmarks import compiled

needs_a_compiler = pytest.mark.skipif(compiled.compiler() is None, reason="there is no C compiler")


@needs_a_compiler
@pytest.mark.parametrize("copies", [1, 2])
def test_copies_between_two_processes_take_some_time(copies):
    assert 0 < compiled.sample("two_copies", 4096, 20, copies) < 60


@needs_a_compiler
@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("name", ["allreduce", "broadcast", "alltoall", "scan"])
def test_a_collective_of_two_processes_takes_some_time(name, given):
    assert 0 < compiled.sample("least_collectives", name, 4096, 20, given, 2) < 60


@needs_a_compiler
@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("nprocs", [2, 3, 4])
def test_an_allgather_takes_some_time(nprocs, given):
    assert 0 < compiled.sample("least_collectives", "allgather", 4096, 20, given, nprocs) < 60


@needs_a_compiler
@pytest.mark.parametrize("nprocs", [1, 3])
def test_an_empty_run_takes_some_time(nprocs):
    assert 0 < compiled.sample("least_run", nprocs, 20) < 60


@needs_a_compiler
def test_numbering_of_scattered_keys_takes_some_time():
    assert 0 < compiled.sample("least_numbering", 5000, 100) < 60


def test_without_a_compiler_the_error_names_the_program(monkeypatch):
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    with pytest.raises(RuntimeError, match=r"^no_such\.c cannot be compiled: there is no cc"):
        compiled.sample("no_such", 1)
