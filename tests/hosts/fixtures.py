"""The fixture ``hosts``, which ``tests/conftest.py`` gives to all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.hosts import Hosts, why_not


@pytest.fixture(scope="module")
def hosts_of_the_file() -> Iterator[Hosts]:
    """Make hosts once for the tests of a file, or skip them with the reason."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Hosts(count=4, rate=1e9, delay=1e-3) as made:
        yield made


@pytest.fixture
def hosts(hosts_of_the_file: Hosts) -> Iterator[Hosts]:
    """Four hosts, joined by links of 1 Gbit/s with a delay of 1 ms; skips where none can be made.

    After the test their processes are killed.
    """
    yield hosts_of_the_file
    for host in range(len(hosts_of_the_file.names)):
        hosts_of_the_file.kill(host)
