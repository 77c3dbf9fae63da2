"""Tests of single modules of the core, in both of its builds."""

from __future__ import annotations

import pytest

from tests.core_modules import compiled, interpreted


@pytest.fixture(params=[compiled, interpreted], ids=["compiled", "python"])
def core(request):
    """Load a module of the core in one of its builds: ``core("log")``."""
    return lambda name: request.param(f"core.{name}")
