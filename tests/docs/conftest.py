"""What the tests of the documentation share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .command_server import CommandServer


@pytest.fixture(scope="package")
def server() -> Iterator[CommandServer]:
    """Return what runs the commands of pages."""
    with CommandServer() as server:
        yield server
