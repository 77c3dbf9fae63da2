"""Hosts on this machine look like machines of their own, and nothing of them is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bsplib.phases import eventually, state_of

pytestmark = pytest.mark.lengthy(values="all")

ROOT = Path(__file__).parents[2]
RATE, DELAY = 1e9, 1e-3  # of the fixture hosts
PAYLOAD = 2**24
LIMIT_S = 30

SERVER = """
import socket
listener = socket.create_server(("", 5000))
print("ready", flush=True)
connection, _ = listener.accept()
with connection:
    while some := connection.recv({size}):
        {act}
    connection.sendall(b"end")
"""
CLIENT = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5000), timeout=20)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
{act}
"""
ROUND_TRIPS = """
def seconds():
    began = time.monotonic()
    connection.sendall(b"x")
    connection.recv(1)
    return time.monotonic() - began

print(min(seconds() for _ in range(20)))
"""
STREAM = f"""
began = time.monotonic()
connection.sendall(bytes({PAYLOAD}))
connection.shutdown(socket.SHUT_WR)
connection.recv(3, socket.MSG_WAITALL)
print(time.monotonic() - began)
"""
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


def python(text):
    return sys.executable, "-I", "-S", "-c", text


@contextlib.contextmanager
def started(hosts, host, *command, **more):
    """A command on a host, which has written a line."""
    with subprocess.Popen(hosts.on(host, *command), stdout=subprocess.PIPE, **more) as process:
        try:
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


def between(hosts, server, client):
    """What a client on host 0 writes that talks with a server on host 1."""
    with started(hosts, 1, *python(server)):
        return said(hosts, 0, *python(CLIENT.format(act=client)), hosts.names[1])


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


def test_each_host_has_a_clock_of_its_own(hosts):
    text = "import time; print(time.monotonic())"
    before = time.monotonic()
    clocks = [float(said(hosts, host, *python(text))) for host in range(4)]
    after = time.monotonic()
    for host, seconds in enumerate(clocks):
        assert before <= seconds - 1000 * (host + 1) <= after


# -- the network ------------------------------------------------------------------------------


def test_a_round_trip_takes_twice_the_delay_at_least(hosts):
    server = SERVER.format(size=1, act="connection.sendall(some)")
    seconds = float(between(hosts, server, ROUND_TRIPS))
    assert 2 * DELAY <= seconds < 20 * DELAY


def test_a_stream_is_no_faster_than_the_link_and_uses_it(hosts):
    server = SERVER.format(size=2**20, act="pass")
    seconds = float(between(hosts, server, STREAM))
    least = 8 * PAYLOAD / RATE
    assert least <= seconds < 20 * least


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
