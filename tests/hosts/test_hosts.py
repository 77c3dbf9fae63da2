"""Hosts on this machine look like machines of their own, and nothing of them is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bsplib.phases import eventually, state_of

pytestmark = pytest.mark.lengthy(values="all")

ROOT = Path(__file__).parents[2]
LIMIT_S = 30

OWNER = """
import json, signal, subprocess
from tests.hosts.hosts import Hosts

with Hosts(count=2) as hosts:
    asleep = subprocess.Popen(hosts.on(1, "sleep", "600"))
    while not hosts.processes_left(1):
        pass
    pids = [hosts._keeper.pid, *hosts._firsts, *hosts._processes(1), asleep.pid]
    print(json.dumps([pids, str(hosts.folder)]), flush=True)
    signal.pause()
"""


def said(hosts, host, *command, **more):
    """What a command on a host writes."""
    line = hosts.on(host, *command)
    done = subprocess.run(
        line, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True, **more
    )
    return done.stdout


def is_gone(os_pid):
    return state_of(os_pid) in ("", "X", "Z")


# -- a host is a machine of its own -----------------------------------------------------------


@pytest.mark.lengthy
def test_each_host_has_a_shared_memory_of_its_own(hosts):
    said(hosts, 1, "touch", "/dev/shm/of_host_1")
    assert hosts.shared_memory_left(1) == ["of_host_1"]
    assert all(hosts.shared_memory_left(host) == [] for host in (0, 2, 3))
    assert "of_host_1" not in os.listdir("/dev/shm")
    said(hosts, 1, "rm", "/dev/shm/of_host_1")
    assert hosts.shared_memory_left(1) == []


# -- nothing is left ------------------------------------------------------------------------


@pytest.fixture
def owner(hosts):
    """A process that has hosts, their processes, and their folder."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        try:
            pids, place = json.loads(process.stdout.readline())
            yield process, pids, Path(place)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_owner_ends_by_a_signal(owner, number):
    process, pids, place = owner
    process.send_signal(number)
    assert eventually(lambda: all(map(is_gone, pids)))
    assert eventually(lambda: not place.exists())
