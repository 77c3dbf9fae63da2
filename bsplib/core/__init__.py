"""The fast path of the runtime, in one source: compiled, or interpreted as it is.

Each module ``X.py`` has a file ``X.pxd`` beside it with the types of its names. With both
Cython compiles an extension module; without a compiler Python runs ``X.py``. Only ``atomics``
is written twice: its functions are C in the compiled modules. The kernels of the applications,
in ``apps/kernels``, are compiled with the core, and by the same rules.

All modules are of one build. ``BUILD`` names it: ``"compiled"``, or ``"python"`` for the
interpreted one. The compiled modules are used where all of them are there, were compiled from the
sources beside them, and can be loaded as far as every program needs them; otherwise ``REASON`` is a
sentence that says why not. It is also a warning where a build is there that cannot be used. The
environment variable ``BSPLIB_CORE`` chooses a build: ``python``, or ``compiled``, which makes it an
error if the compiled modules cannot be used.

The core imports nothing of bsplib but ``errors`` and ``sync_kinds``. Begin reading at
``engine.py``.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any

from bsplib.core import _build
from bsplib.errors import UsageError

_VARIABLE = "BSPLIB_CORE"
_HOW_TO_COMPILE = "`make core` in a checkout; elsewhere install a C compiler, and bsplib anew"
_PACKAGE = __name__.rpartition(".")[0]
_NEEDED = ("core.engine", "core.values")
"""Modules that every program needs; they import more."""
_UNUSABLE = (ImportError, AttributeError, SystemError, TypeError, ValueError)
"""What an extension module raises that was built for another numpy or another system."""


class _Interpreted:
    """Finds the sources where extension modules lie beside them."""

    def __init__(self) -> None:
        self._names = frozenset(_build.extension_names())

    def find_spec(self, fullname: str, *_unused: Any) -> ModuleSpec | None:
        name = fullname.removeprefix(f"{_PACKAGE}.")
        if name not in self._names:
            return None
        return spec_from_file_location(fullname, _build.path_of(name, ".py"))


def _why_not_compiled() -> tuple[str, bool]:
    """Return why the compiled modules are not used, and whether that is worth a warning.

    As a side effect those are imported that every program needs; none is where one of them fails.
    The others are of the same build, and are imported when they are used.
    """
    compiled_from = _build.read_note()
    if compiled_from is None:
        return "it was not compiled", False
    if compiled_from != _build.digest():
        return "its sources were changed after they were compiled", True
    if not _build.is_compiled():
        return "only a part of its modules is there", True
    try:
        for name in (_build.SHARED, *_NEEDED):
            importlib.import_module(f"{_PACKAGE}.{name}")
    except _UNUSABLE as error:
        return f"its compiled modules cannot be loaded ({type(error).__name__}: {error})", True
    return "", False


def _forget_modules() -> None:
    for name in _build.extension_names():
        sys.modules.pop(f"{_PACKAGE}.{name}", None)
        globals().pop(name.rpartition(".")[2], None)


def _choose() -> tuple[str, str]:
    """Return the build that is used, and why it is not the compiled one."""
    wanted = os.environ.get(_VARIABLE, "")
    if wanted not in ("", "python", "compiled"):
        raise UsageError(f"{_VARIABLE} is {wanted!r}, and has to be 'python' or 'compiled'")
    why, unexpected = f"{_VARIABLE}=python chooses it", False
    if wanted != "python":
        why, unexpected = _why_not_compiled()
    if not why:
        return "compiled", ""
    if wanted == "compiled":
        raise UsageError(f"{_VARIABLE} asks for the compiled core, but {why}")
    reason = f"the core of bsplib is interpreted: {why}"
    _forget_modules()
    sys.meta_path.insert(0, _Interpreted())
    if unexpected:
        warnings.warn(f"{reason}; to compile it: {_HOW_TO_COMPILE}", RuntimeWarning, stacklevel=2)
    return "python", reason


BUILD, REASON = _choose()
