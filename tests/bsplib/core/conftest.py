"""Tests of single modules of the core, in both of its builds."""

from __future__ import annotations

import functools
import importlib
import os
from importlib.util import module_from_spec, spec_from_file_location

import pytest

import bsplib.core


@functools.cache
def interpreted(name):
    """Load the source of a module of the core, whichever build bsplib uses."""
    path = os.path.join(os.path.dirname(bsplib.core.__file__), f"{name}.py")
    spec = spec_from_file_location(f"interpreted_{name}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(name):
    """Load a module of the core as it was compiled."""
    if bsplib.core.BUILD != "compiled":
        pytest.skip(bsplib.core.REASON)
    return importlib.import_module(f"bsplib.core.{name}")


@pytest.fixture(params=[compiled, interpreted], ids=["compiled", "python"])
def core(request):
    """Load a module of the core in one of its builds: ``core("log")``."""
    return request.param
