"""Single modules of the core, or of the kernels, in one of their builds.

Names begin in the package: ``core.log``, ``apps.kernels.sums``.
"""

from __future__ import annotations

import functools
import importlib
from importlib.util import module_from_spec, spec_from_file_location

import pytest

import bsplib.core
from bsplib.core import _build


@functools.cache
def interpreted(name):
    """Load the source of a module, whichever build bsplib uses."""
    spec = spec_from_file_location(f"interpreted_{name}", _build.path_of(name, ".py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(name):
    """Load a module as it was compiled."""
    if bsplib.core.BUILD != "compiled":
        pytest.skip(bsplib.core.REASON)
    return importlib.import_module(f"bsplib.{name}")
