"""How long a process looks before it sleeps, and what the computer grants it."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from itertools import pairwise

import pytest

from bsplib.backends.shm import patience
from bsplib.backends.shm.patience import LONGEST_NS, SHORT_NS, Patience

ME, OTHER = 1, 2
LOOK_NS = 1000
LARGE_PART = 0.9
"""Of the time that a process may look, as far as looks that take time come to it."""


@dataclass
class Computer:
    """A clock that only looks and sleeps move, and what the system says about processes."""

    now: int = 0
    grants: bool = True
    delays: dict[int, int] | None = None

    def looked(self, of: Patience, for_ns: int, gap_ns: int = LOOK_NS) -> int:
        """Let a process wait for a time; return for how long it looked before it slept."""
        of.begin(0.5)
        began = self.now
        if of.is_considerate:
            self.now += for_ns
            of.slept()
            return 0
        while self.now - began < for_ns:
            self.now += gap_ns
            if not of.lasts([ME, OTHER]):
                looked = self.now - began
                self.now = max(self.now, began + for_ns)
                of.slept()
                return looked
        return self.now - began


@pytest.fixture
def computer(monkeypatch):
    """Return a computer whose clock and system are under control."""
    made = Computer(delays={})
    monkeypatch.setattr(patience.time, "perf_counter_ns", lambda: made.now)
    monkeypatch.setattr(patience, "run_delay_ns", lambda os_pid: made.delays.get(os_pid, 0))
    monkeypatch.setattr(patience, "may_keep_core_busy", lambda: made.grants)
    return made


def learned(computer):
    """A process that has a core, and whose waits were worth a long look so far."""
    process = Patience(has_core=True)
    computer.looked(process, LONGEST_NS // 2)
    return process


def test_a_process_looks_only_shortly_until_its_first_wait_has_shown_how_long_it_is(computer):
    process = Patience(has_core=True)
    assert [computer.looked(process, 1_000_000) for _ in range(3)] == [
        SHORT_NS // 2,
        1_000_000,
        1_000_000,
    ]


def test_a_process_with_a_core_looks_until_the_wait_is_over(computer):
    process = learned(computer)
    for wait_ns in (100_000, 1_000_000, 10_000_000):
        assert computer.looked(process, wait_ns) == wait_ns


def test_processes_that_outnumber_the_cores_look_as_long_as_they_are_told(computer):
    process = Patience(has_core=False)
    assert computer.looked(process, 10_000_000) == SHORT_NS // 2


def test_a_process_sleeps_in_the_end(computer):
    looked = computer.looked(learned(computer), 10**9)
    assert LARGE_PART * LONGEST_NS <= looked <= LONGEST_NS + LOOK_NS


def test_after_waits_that_were_too_long_a_process_looks_only_shortly(computer):
    process = learned(computer)
    looked = [computer.looked(process, 50_000_000) for _ in range(10)]
    assert looked == sorted(looked, reverse=True)
    assert looked[-1] == SHORT_NS // 2
    assert sum(looked) < 3 * LONGEST_NS


def test_a_process_looks_long_again_once_its_waits_are_short_enough(computer):
    process = learned(computer)
    for _ in range(10):
        computer.looked(process, 50_000_000)
    computer.looked(process, 5_000_000)
    assert computer.looked(process, 5_000_000) == 5_000_000


def test_short_waits_do_not_make_a_process_look_long(computer):
    process = learned(computer)
    for _ in range(10):
        computer.looked(process, 50_000_000)
    computer.looked(process, 100_000)
    assert computer.looked(process, 50_000_000) == SHORT_NS // 2


@pytest.mark.parametrize("who", [ME, OTHER])
def test_a_process_sleeps_if_it_or_the_one_it_waits_for_lacked_a_core(computer, who):
    process = learned(computer)
    assert computer.looked(process, 1_000_000) == 1_000_000
    computer.delays[who] = 500_000
    assert computer.looked(process, 1_000_000) == SHORT_NS


def test_a_process_sleeps_if_another_one_had_its_core_between_two_looks(computer):
    process = learned(computer)
    assert computer.looked(process, 10_000_000, gap_ns=300_000) == 300_000


def test_a_process_whose_core_was_needed_tries_again_more_and_more_rarely(computer):
    process = learned(computer)
    tries = [
        number
        for number in range(100)
        if computer.looked(process, 10_000_000, gap_ns=220_000) == 220_000
    ]
    assert len(tries) < 10
    assert [later - former for former, later in pairwise(tries)] == [
        4 * 2**number + 1 for number in range(len(tries) - 1)
    ]


def test_a_process_that_lost_its_core_while_it_gave_way_sleeps_at_once(computer):
    process = learned(computer)
    process.be_considerate()
    assert [computer.looked(process, 1_000_000) for _ in range(6)] == [0] * 4 + [1_000_000] * 2


def test_a_process_notices_another_one_on_its_core_in_short_waits_too(computer):
    process = Patience(has_core=True)
    assert computer.looked(process, 220_000, gap_ns=220_000) == 220_000
    assert computer.looked(process, 220_000) == 0


def test_processes_that_outnumber_the_cores_do_not_sleep_at_once(computer):
    process = Patience(has_core=False)
    process.be_considerate()
    assert computer.looked(process, 10_000_000, gap_ns=220_000) == 440_000


def test_after_successful_trials_a_process_tries_again_sooner(computer):
    process = learned(computer)
    for _ in range(4):  # it pauses for 4, 8, 16 and 32 waits
        process.be_considerate()
    while computer.looked(process, 1_000_000) == 0:
        pass
    for _ in range(4):
        assert computer.looked(process, 1_000_000) == 1_000_000
    process.be_considerate()
    looked = [computer.looked(process, 1_000_000) for _ in range(10)]
    assert looked == [0] * 4 + [1_000_000] * 6


def test_a_process_does_not_look_long_where_the_computer_does_not_grant_it(computer):
    computer.grants = False
    process = learned(computer)
    assert computer.looked(process, 10_000_000) == SHORT_NS
    assert computer.looked(process, 10_000_000) == SHORT_NS // 2


def test_a_process_with_other_threads_does_not_look_long(computer):
    process, end = Patience(has_core=True), threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert computer.looked(process, 10_000_000) == SHORT_NS // 2
    finally:
        end.set()
        thread.join()
    assert computer.looked(process, 10_000_000) == 10_000_000


def test_the_system_says_for_how_long_a_process_lacked_a_core():
    assert patience.run_delay_ns(os.getpid()) > 0
    assert patience.run_delay_ns(2**30) == 0  # there is no such process


# -- what the computer grants ---------------------------------------------------------------------


def supply(folder, name, **files):
    """Write what the system says about a supply of power."""
    (folder / name).mkdir()
    for file, text in files.items():
        (folder / name / file).write_text(f"{text}\n")


def test_a_computer_with_a_battery_that_discharges_is_on_battery(tmp_path):
    assert not patience.on_battery(tmp_path / "absent")
    supply(tmp_path, "AC", type="Mains", online="0")
    supply(tmp_path, "mouse", type="Battery", status="Discharging", scope="Device")
    assert not patience.on_battery(tmp_path)
    supply(tmp_path, "BAT0", type="Battery", status="Full")
    assert not patience.on_battery(tmp_path)
    supply(tmp_path, "BAT1", type="Battery", status="Discharging")
    assert patience.on_battery(tmp_path)


def groups(folder, membership, **quotas):
    """Write which groups a process is in, and files of groups; return the quota."""
    (folder / "membership").write_text(membership)
    for path, text in quotas.items():
        file = folder / "groups" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return patience.quota(folder / "membership", folder / "groups")


@pytest.mark.parametrize(
    ("membership", "files", "cores"),
    [
        ("0::/\n", {}, float("inf")),
        ("0::/\n", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000"}, float("inf")),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000"}, 0.5),
        (
            "4:cpu,cpuacct:/x\n0::/\n",
            {
                "cpu,cpuacct/x/cpu.cfs_quota_us": "200000",
                "cpu,cpuacct/x/cpu.cfs_period_us": "100000",
            },
            2,
        ),
        (
            "1:cpu:/\n",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            float("inf"),
        ),
        ("9:memory:/x\n", {"memory/x/cpu.max": "1 100"}, float("inf")),
    ],
)
def test_the_quota_of_a_process_is_the_least_of_its_control_groups(
    tmp_path, membership, files, cores
):
    assert groups(tmp_path, membership, **files) == cores


def test_a_quota_below_the_cores_of_a_process_forbids_to_keep_one_busy(monkeypatch):
    monkeypatch.setattr(patience, "on_battery", lambda: False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    for cores, granted in ((float("inf"), True), (2, True), (1.5, False)):
        monkeypatch.setattr(patience, "quota", lambda cores=cores: cores)
        assert patience.may_keep_core_busy() == granted
    monkeypatch.setattr(patience, "on_battery", lambda: True)
    monkeypatch.setattr(patience, "quota", lambda: float("inf"))
    assert not patience.may_keep_core_busy()
