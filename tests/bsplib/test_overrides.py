"""What replaces the arguments of a run in a script, also in threads that the script starts."""

from __future__ import annotations

import threading

import pytest

import bsplib
from bsplib.running import options
from bsplib.running.options import current, override, overriding


def count():
    """Return how many processes a run has that names one."""
    return len(bsplib.run(lambda bsp: None, nprocs=1, backend="sim"))


def in_thread(work):
    """Return the result of work that a new thread does."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_that_a_script_starts_has_the_override():
    with overriding(nprocs=3):
        assert in_thread(count) == 3
    assert in_thread(count) == 1


def test_an_override_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError), overriding(nprocs=3):
        raise ZeroDivisionError
    assert count() == 1


def test_an_inner_override_keeps_the_fields_that_it_does_not_name():
    with overriding(nprocs=3, check=True), overriding(nprocs=2):
        assert (count(), current().check) == (2, True)


def test_threads_override_without_effect_on_each_other():
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with overriding(nprocs=4):
            inside.set()
            leave.wait()
            return count()

    found = []
    thread = threading.Thread(target=lambda: found.append(stay()))
    with overriding(nprocs=3):
        thread.start()
        inside.wait()
        assert count() == 3
        leave.set()
        thread.join()
    assert found == [4]


def test_an_override_without_end_holds_for_threads_that_the_script_leaves_behind(monkeypatch):
    monkeypatch.setattr(options, "_in_force", list(options._in_force))

    def command():
        override(nprocs=3)
        return count()

    assert in_thread(command) == 3
    assert in_thread(count) == 3


def test_what_is_called_hears_which_arguments_were_replaced():
    calls = []
    with overriding(arguments={"n": 7, "other": 1}, called=calls.append):
        assert bsplib.run(lambda bsp, n: n, 2, nprocs=1, backend="sim") == [7]
    assert calls == [{"n"}]
