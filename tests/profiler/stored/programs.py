"""The runs that are stored, each with facts that are known by hand.

A fact is a place in the document of ``bsp report --json`` and its value: ``nodes/relax/loss_s`` is
the loss of the node that is called ``relax``, ``verdict/0/kind`` the kind of the first sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from bsplib.recording.records import Doing, Frame, Lifetime, Run
from bsplib.sync_kinds import Kind
from tests.scripted import Script, sampled

US = 1e-6
FREE = {"name": "free", "source": "", "g": 0.0, "l": 0.0, "speed": 1e9}
DEAR = {"name": "dear", "source": "", "g": 1e-9, "l": 1e-6, "speed": 1e9}
"""A nanosecond for each byte, and a microsecond for each superstep."""


class Stored(NamedTuple):
    """A run, or several of one program, and what is known of the last one."""

    make: Callable[[], tuple[Run, ...]]
    facts: dict[str, object]


STORED: dict[str, Stored] = {}


def stored(**facts: object) -> Callable[[Callable[[], object]], None]:
    """Store the runs of a function under its name."""

    def keep(make: Callable[[], object]) -> None:
        def runs() -> tuple[Run, ...]:
            made = make()
            return made if isinstance(made, tuple) else (made,)

        known = {name.replace("__", "/"): value for name, value in facts.items()}
        STORED[make.__name__] = Stored(runs, known)

    return keep


def run_of(made: Script, machine: dict[str, object] = FREE, **meta: object) -> Run:
    """Return a run on virtual processors of a Machine, whose g and l are its rates."""
    complete = meta.pop("complete", True)
    meta = {"program": "app.py", "backend": "sim", "machine": machine, **meta}
    return made.run(complete=complete, meta=meta)


def us(*values: float) -> list[int]:
    """Return microseconds in nanoseconds."""
    return [round(1000 * value) for value in values]


# -- computation -----------------------------------------------------------------------------------


@stored(
    loss_s=750 * US,  # in each of 10 supersteps three of four wait for 100 µs
    nodes__relax__time_s=1100 * US,
    nodes__relax__comp_max_s=1100 * US,
    nodes__relax__comp_avg_s=350 * US,
    nodes__relax__comp_min_s=100 * US,
    verdict__0__kind="fixed",
    verdict__0__without_s=350 * US,
)
def fixed():
    program = Script(4)
    for _ in range(10):
        program.step("main fine_grid relax:40", us(10, 10, 110, 10))
    return run_of(program)


@stored(loss_s=600 * US, verdict__0__kind="rotating", nodes__relax__comp_max_s=880 * US)
def rotating():
    program = Script(4)
    for turn in range(8):
        program.step("main relax:40", us(*(110 if pid == turn % 4 else 10 for pid in range(4))))
    return run_of(program)


@stored(loss_s=750 * US, verdict__0__kind="one-off", verdict__0__superstep=60)
def one_off():
    program = Script(4)
    for turn in range(100):
        program.step("main advance:40", us(1010 if turn == 60 else 10, 10, 10, 10))
    return run_of(program)


@stored(
    nodes__heavy__comp_max_s=900 * US,
    nodes__heavy__comp_avg_s=112.5 * US,  # one process of eight
    nodes__heavy__comp_min_s=0.0,
    nodes__light__comp_min_s=0.0,
    nodes__heavy__loss_s=700 * US,
    verdict__0__kind="fixed",
)
def branch():
    program = Script(8)
    for _ in range(10):
        program.step([*["main light"] * 7, "main heavy"], us(*[10] * 7, 90))
    return run_of(program)


@stored(loss_s=67.5 * US, time_s=110 * US, verdict__0__kind="fixed")
def after_the_last_sync():
    program = Script(4)
    program.step("main", us(10, 10, 10, 10))
    program.step("main", us(100, 10, 10, 10), kind=Kind.END)
    return run_of(program)


@stored(balanced=True, loss_s=10 * US, time_s=1010 * US)
def balanced():
    program = Script(4)
    for _ in range(10):
        program.step("main relax:40", us(100, 101, 100, 99))
    return run_of(program)


# -- calls -----------------------------------------------------------------------------------------


@stored(
    nodes__onestage__supersteps=3,
    nodes__onestage__comp_max_s=60 * US,
    nodes__foo__comp_max_s=40 * US,
    nodes__bar__comp_max_s=21 * US,
    nodes__onestage__loss_s=30 * US,
    nodes__main__h_max_bytes=6000,
)
def shared_function():
    """Figure 3 of Jarvis et al., on two processes and with fewer iterations."""
    program = Script(2)
    for caller in ("foo", "foo", "bar"):
        program.step(f"main {caller} onestage:9", us(20, 0), puts=[(0, 1, 2000)])
    program.step("main bar twostage:34", us(1, 1), transfer=500)
    program.step("main:8", kind=Kind.END)
    return run_of(program)


@stored(
    nodes__a__supersteps=2,  # each record counts once, however often a is on its stack
    nodes__b__supersteps=2,
    nodes__a__comp_max_s=30 * US,
    nodes__b__comp_max_s=30 * US,
    nodes__c__comp_max_s=5 * US,
)
def recursion():
    program = Script(2)
    program.step("main a b a:3", us(10, 10))
    program.step("main b a a:3", us(20, 10))
    program.step("main main.<locals>.<listcomp> c:7", us(5, 5))
    return run_of(program)


@stored(
    nodes__solve__loss_s=675 * US,
    verdict__0__kind="fixed",
    nodes__solve__supersteps=20,
)
def behind_a_collective():
    program = Script(4)
    for _ in range(10):
        program.step("main solve:25 bsplib/collectives.py/allreduce:7", us(5, 5, 5, 95))
        program.step("main solve:25 bsplib/collectives.py/allreduce:7", us(1, 1, 1, 1))
    return run_of(program)


# -- transfers -------------------------------------------------------------------------------------


@stored(
    nodes__gather__h_max_bytes=27_000,
    nodes__gather__h_avg_bytes=13_500,
    nodes__gather__h_min_bytes=9_000,
    nodes__gather__loss_s=13.5 * US,
    verdict__0__kind="fan-in",
)
def fan_in():
    program = Script(4)
    for _ in range(10):
        program.step("main gather", transfer=3700, puts=[(pid, 0, 900) for pid in (1, 2, 3)])
    return run_of(program, DEAR)


@stored(nodes__scatter__h_max_bytes=27_000, verdict__0__kind="fan-out")
def fan_out():
    program = Script(4)
    for _ in range(10):
        program.step("main scatter", transfer=3700, puts=[(0, pid, 900) for pid in (1, 2, 3)])
    return run_of(program, DEAR)


@stored(
    nodes__exchange__h_max_bytes=1000,  # of 1 in: 400 + 600; of 0 out: 400, of 2 out: 600, in: 50
    nodes__exchange__h_by_process_bytes=[400, 1000, 600],
)
def puts_and_gets():
    program = Script(3)
    puts, gets = [(0, 1, 400), (1, 2, 50)], [(2, 1, 600)]
    program.step("main exchange", transfer=2000, puts=puts, gets=gets)
    return run_of(program, DEAR)


@stored(verdict__0__kind="too many supersteps", nodes__tick__supersteps=50)
def many_supersteps():
    program = Script(4)
    for _ in range(50):
        program.step("main tick", us(0.1, 0.1, 0.1, 0.1), transfer=1000)
    program.step("main work", us(90, 90, 90, 90), transfer=1000)
    return run_of(program, DEAR)


@stored(verdict__0__kind="communication-bound")
def many_bytes():
    program = Script(2)
    for turn in range(20):
        size = 40_000 if turn % 2 else 20_000
        puts = [(0, 1, size), (1, 0, size)]
        program.step("main pass_on", us(1, 1), transfer=size + 1000, puts=puts)
    return run_of(program, DEAR)


# -- groups ----------------------------------------------------------------------------------------


@stored(
    nodes__slow__comp_max_s=100 * US,
    nodes__fast__comp_max_s=20 * US,
    nodes__slow__comp_avg_s=50 * US,  # two processes of four
    nodes__slow__comp_min_s=0.0,
    nodes__slow__loss_s=40 * US,  # two processes of four wait for 80 µs
    loss_s=40 * US,
)
def sub_groups():
    program = Script(4)
    with program.partition(2, 2) as (left, right):
        program.step("main slow", us(100, 100), group=left)
        program.step("main fast", us(20, 20), group=right)
    program.step("main")
    return run_of(program)


@stored(
    nodes__slow__loss_s=34.5 * US,  # 69 µs of two processes of four
    nodes__one__loss_s=5 * US,
    nodes__two__loss_s=0.0,
    loss_s=39.5 * US,
)
def nested_groups():
    program = Script(4)
    with program.partition(2, 2) as (left, right):
        program.step("main slow", us(100, 100), group=left)
        with program.partition(1, 1, group=right) as (one, two):
            program.step("main one", us(30), group=one)
            program.step("main two", us(10), group=two)
        program.step("main fast", us(1, 1), group=right)
    program.step("main")
    return run_of(program)


@stored(
    nodes__solo__comp_max_s=100 * US,
    nodes__solo__comp_avg_s=25 * US,
    nodes__both__comp_max_s=30 * US,
    nodes__both__comp_avg_s=20 * US,
    loss_s=65 * US,  # 110, 30, 20 and 20 of four times 110 µs are useful
)
def one_colour_rests():
    program = Script(4)
    with program.split([2]) as (alone,):
        program.step("main solo", us(100), group=alone)
    with program.split([0, 2], [1, 3]) as (even, odd):
        program.step("main both", us(30, 10), group=even)
        program.step("main both", us(20, 20), group=odd)
    program.step("main")
    return run_of(program)


@stored(
    nodes__main__supersteps=3,
    **{"nodes__app.py line 7__elapsed_s": 63 * US, "nodes__app.py line 7__comp_max_s": 70 * US},
)
def oblivious():
    program = Script(2)
    program.step("main:7", us(10, 40), waits=us(5, 0), kind=Kind.OBLSYNC)
    program.step("main:7", us(30, 20), waits=us(0, 3), kind=Kind.OBLSYNC)
    program.step("main:8", us(70, 2))
    return run_of(program)


# -- the system ------------------------------------------------------------------------------------


@stored(
    verdict__0__kind="blocked",
    account__run_ns__blocked=2 * 10 * 80_000,  # that of process 1, and the wait of process 0
)
def blocked():
    program = Script(2)
    for _ in range(10):
        program.step("main load:40", us(20, 100), cpu=us(20, 20))
    run = run_of(program)
    run.records["comp_ready"] = 0
    return run


@stored(waiting_for_core_s=3000 * US, verdict__0__kind="waiting for a core")
def too_few_cores():
    program = Script(4)
    for _ in range(10):
        program.step("main relax:40", us(*[100] * 4), cpu=us(20, 20, 20, 40))
    return run_of(program, cores=1)


@stored(verdict__0__kind="fixed", executed__0__name="prepare", loss_s=45 * 10 * US)
def sampled_lines():
    """Process 0 computes in a function that does not sync."""
    program = Script(2)
    for _ in range(10):
        program.step("main exchange", us(100, 10))
    stack = (Frame("app.py", "main", 1, 5), Frame("app.py", "prepare", 20, 21))
    slow = [(0, number, stack, Doing.COMPUTING) for number in range(10)]
    return sampled(run_of(program), *slow)


@stored(complete=False, error="ValueError: no input", nodes__main__supersteps=2)
def broken_off():
    program = Script(3)
    program.step("main", us(10, 20, 30))
    program.step(["main work", None, "main work"], us(10, 0, 5))
    return run_of(program, complete=False, error="ValueError: no input")


@stored(too_short__starts="The run is too short to judge", account__run_ns__ends=2 * 60_000)
def short():
    program = Script(2)
    program.step("main late", us(1, 2))
    run = run_of(program, backend="shm")
    last = int(run.records["end"].max())
    life = Lifetime(-60_000, (-60_000,) * 2, (0, 0), (last, last), last, last)
    return replace(run, lifetime=life)


@stored(loss_s=45 * 10 * US, repeat=[2, 3])
def repeats():
    runs = []
    for number, excess in enumerate((120, 100, 90)):
        program = Script(2)
        for _ in range(10):
            program.step("main relax:40", us(100, 100 + excess))
        runs.append(run_of(program, repeat=[number, 3]))
    return tuple(runs)


@stored(nprocs=2, loss_s=0.5 * US)
def hostile_names():
    program = Script(2)
    program.step("main <img/src=x> {cost}\x1b[31m a\u202eb lone\udc80", us(1, 0))
    return run_of(program, program="</script>\x07")
