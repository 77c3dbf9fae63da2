"""The clock of one virtual processor, by itself."""

from __future__ import annotations

from contextlib import suppress

import pytest

from bsplib.core.clock import Clock, EmptyPrimitive

MS = 10**6


class Thread:
    """The CPU time of a thread, which passes only where a test says so."""

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        return self.now_ns


@pytest.fixture
def thread():
    return Thread()


def computed(clock, thread, ns):
    """Let a process compute between two primitives; return the virtual time after it."""
    clock.resume()
    thread.now_ns += ns
    clock.pause()
    return clock.now()


def test_a_clock_runs_between_primitives_only(thread):
    clock = Clock(read=thread)
    clock.settle()
    thread.now_ns += 5
    assert computed(clock, thread, 70) == 70
    thread.now_ns += 5
    assert computed(clock, thread, 70) == 140


def test_a_clock_runs_when_the_outermost_primitive_is_left(thread):
    clock = Clock(read=thread)
    clock.settle()
    clock.pause()
    thread.now_ns += 5
    clock.resume()
    assert computed(clock, thread, 3) == 3


@pytest.mark.parametrize(("scale", "ns", "expected"), [(0.5, 1, 0), (0.5, 3, 2), (2.5, 3, 8)])
def test_measured_time_is_scaled_and_rounded_to_the_even_nanosecond(thread, scale, ns, expected):
    clock = Clock(scale, thread)
    clock.settle()
    assert computed(clock, thread, ns) == expected


def test_the_time_of_an_empty_stretch_is_not_counted(thread):
    clock = Clock(read=thread)
    clock.settle()
    clock.empty_ns = 30
    assert computed(clock, thread, 20) == 0
    assert computed(clock, thread, 31) == 1


def test_the_time_of_an_empty_stretch_between_primitives_of_the_core_is_another(thread):
    clock = Clock(read=thread)
    clock.settle()
    clock.empty_ns, clock.core_empty_ns = 40, 10
    primitive = EmptyPrimitive(clock)
    clock.resume()
    seen = []
    for _ in range(3):
        thread.now_ns += 100
        primitive.call()
        seen.append(clock.now())
    thread.now_ns += 100
    clock.pause()
    assert [*seen, clock.now()] == [75, 165, 255, 330]


def test_what_was_measured_first_counts_once_the_time_is_read(thread):
    clock = Clock(read=thread)
    assert computed(clock, thread, 1000) == 0
    clock.settle()
    assert clock.now() == 1000


def test_a_long_computation_counts_before_the_time_is_read(thread):
    assert computed(Clock(read=thread), thread, 3 * MS) == 3 * MS


def test_a_short_computation_before_the_first_charge_is_dropped(thread):
    clock = Clock(read=thread)
    computed(clock, thread, 1000)
    clock.charge(1e-6)
    assert computed(clock, thread, 3 * MS) == 1000


@pytest.mark.parametrize(
    ("seconds", "ns"), [(2.5e-9, 2), (3.5e-9, 4), (0.25, 250 * MS), (1, 1000 * MS)]
)
def test_a_charge_is_rounded_to_the_even_nanosecond(seconds, ns):
    clock = Clock()
    clock.charge(seconds)
    assert clock.now() == ns


def test_a_time_to_which_a_clock_advances_is_no_computation(thread):
    clock = Clock(read=thread)
    clock.charge(2e-9)
    clock.advance_to(10)
    clock.advance_to(5)
    assert (clock.now(), clock.computed_ns()) == (10, 2)


def test_a_clock_runs_inside_a_primitive_for_a_function_of_the_program(thread):
    clock = Clock(read=thread)
    clock.settle()
    clock.resume()
    clock.pause()
    clock.pause()  # a primitive that another one calls
    with suppress(ZeroDivisionError), clock.computing():
        thread.now_ns += 9
        raise ZeroDivisionError
    thread.now_ns += 5
    assert clock.now() == 9
    clock.resume()
    clock.resume()
    thread.now_ns += 1
    clock.pause()
    assert clock.now() == 10


def test_the_clock_of_the_system_is_read_where_no_other_is_given():
    clock = Clock()
    clock.settle()
    clock.resume()
    sum(range(100_000))
    clock.pause()
    assert 0 < clock.now() == clock.computed_ns()


def test_a_time_of_more_than_146_years_is_refused():
    clock = Clock()
    clock.charge(4e9)
    for seconds in (1e9, 1e300):
        with pytest.raises(OverflowError, match="2\\^62 ns, 146 years"):
            clock.charge(seconds)
    assert clock.now() == 4 * 10**18


@pytest.mark.parametrize(("before", "late"), [(MS // 2, False), (3 * MS, True)])
def test_a_first_charge_after_a_long_computation_is_late(thread, before, late):
    clock = Clock(read=thread)
    computed(clock, thread, before)
    assert [clock.charge(1.0), clock.charge(1.0)] == [late, False]
