"""SIGQUIT, which Ctrl-backslash sends: ``bsp run`` prints where every process is and goes on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from bsplib.backends.members import Whereabouts
from bsplib.running.failures import whereabouts_text

pytestmark = pytest.mark.slow  # each starts an interpreter and waits for answers

DEADLINE_S = 30
SCRIPT = """
import os, sys, time
import bsplib

def holds(bsp):
    print("here", flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)

def main(bsp):
    bsp.sync()
    if bsp.pid == 1:
        holds(bsp)
    return bsp.allreduce(1)

if __name__ == "__main__":
    print(bsplib.run(main, {arguments}))
"""
HOLDS, LOOP, WAIT = 7, 8, 14
"""Lines of the script."""
RUNS = {
    "fork": "nprocs=3",
    "forkserver": "nprocs=3, start_method='forkserver'",
    "spawn": "nprocs=3, start_method='spawn'",
    "sim": "nprocs=3, backend='sim'",
}
POOL = """
with bsplib.Pool(3) as pool:
    print(pool.run(main))
"""


@pytest.fixture(autouse=True)
def _not_ignored():
    """What a script starts in the background has SIGQUIT ignored, and then bsplib leaves it so."""
    before = signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGQUIT, before)


class Asked:
    """A script under ``bsp run`` in a process group of its own, as a terminal has it."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines = []
        self.reads = threading.Thread(target=self._read)
        self.reads.start()

    def _read(self):
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def ask(self, sentence, times):
        """Ask again and again until the answer has ended ``times`` times with a sentence."""
        deadline = time.monotonic() + DEADLINE_S
        while sum(sentence in line for line in self.lines) < times:
            assert self.process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            os.killpg(self.process.pid, signal.SIGQUIT)
            time.sleep(0.5)

    def end(self):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE_S)
        self.reads.join()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(script, *options):
        path = tmp_path / "script.py"
        path.write_text(script)
        command = [sys.executable, "-m", "bsplib", "run", *options, path, tmp_path / "go on"]
        started.append(Asked([*map(str, command)]))
        assert started[-1].process.stdout.readline().endswith("here\n")
        return started[-1]

    yield begin
    for each in started:
        each.end()


@pytest.mark.parametrize("how", RUNS)
def test_every_process_is_shown_and_the_run_goes_on(start, how, tmp_path):
    asked = start(SCRIPT.format(arguments=RUNS[how]))
    asked.ask("Only process 1 does not wait.", times=2)
    (tmp_path / "go on").touch()
    assert asked.process.stdout.read() == "[3, 3, 3]\n"
    assert asked.process.wait(DEADLINE_S) == 0
    shown = "".join(asked.lines)
    assert re.search(rf"^0(, 2)? +1 +script\.py:{WAIT} +waiting in allreduce$", shown, re.M), shown
    assert re.search(rf"^1 +1 +script\.py:({LOOP}|{LOOP + 1}) +computing in holds$", shown, re.M)


def test_a_pool_answers_in_every_run(start, tmp_path):
    script = SCRIPT.partition("if __name__")[0]
    asked = start(script + POOL)
    asked.ask("Only process 1 does not wait.", times=1)
    (tmp_path / "go on").touch()
    assert asked.process.stdout.read().endswith("[3, 3, 3]\n")
    assert asked.process.wait(DEADLINE_S) == 0


def test_a_script_that_has_a_handler_of_its_own_keeps_it(start, tmp_path):
    handler = "import signal\nsignal.signal(signal.SIGQUIT, lambda *_: print('own', flush=True))\n"
    asked = start(handler + SCRIPT.format(arguments=RUNS["sim"]))
    os.killpg(asked.process.pid, signal.SIGQUIT)
    assert asked.process.stdout.readline().endswith("own\n")
    (tmp_path / "go on").touch()
    assert asked.process.wait(DEADLINE_S) == 0
    assert not any("superstep" in line for line in asked.lines)


def test_a_sentence_says_who_does_not_wait():
    waits = [Whereabouts(pid, 3, "a.py:1", "waiting in sync") for pid in range(4)]
    busy = Whereabouts(4, 3, "a.py:9", "computing in main")
    ended = Whereabouts(5, 4, "", "has ended")
    assert whereabouts_text([*waits, busy]).endswith("\nOnly process 4 does not wait.")
    assert whereabouts_text([*waits, busy, busy._replace(pid=5)]).endswith(
        "Only processes 4 to 5 do not wait."
    )
    assert whereabouts_text([*waits, ended]).endswith("\nEvery process that has not ended waits.")
    assert whereabouts_text([busy, ended]).splitlines()[-1].startswith("5 ")
