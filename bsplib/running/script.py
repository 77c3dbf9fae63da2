"""A script that is run as ``python SCRIPT`` does, in the process of a command."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location


def run_file(script: str, loader: SourceFileLoader | None = None) -> None:
    """Run a script as ``python SCRIPT`` does.

    Args:
        script: the file.
        loader: makes code of it; that of Python if None.

    Raises:
        BaseException: what the script raises.
    """
    loader = loader or SourceFileLoader("__main__", script)
    spec = spec_from_file_location("__main__", script, loader=loader)
    assert spec is not None  # it has a loader
    code = loader.source_to_code(loader.get_data(script), script)
    module = module_from_spec(spec)
    module.__spec__ = None
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        exec(code, vars(module))  # the user's own program
    finally:
        sys.modules["__main__"] = before
