"""Lets the calls of MPI of this process be recorded, from the first to the last.

The shim in C defines the functions of MPI and calls those of the library by their second names
(PMPI). It has to come before the library wherever a symbol is looked up. Three ways were tried on
both implementations:

* ``mpi4py.profile`` and ``dlopen`` with RTLD_GLOBAL before ``mpi4py.MPI`` is imported do the same.
  The shim stands in the scope of the whole process, which is searched before the libraries that
  ``mpi4py.MPI`` itself needs; so is it for h5py and petsc4py. This is used.
* LD_PRELOAD would also reach programs that are linked with MPI, but Python is not. It needs a
  second exec, which some launchers do not survive, and children of the program inherit it.
* Loading the library of MPI into the global scope first hides the shim.

Calls inside the library of MPI, such as those of MPI-IO, also reach the shim where the library uses
the first names; they come while another call is recorded, and are left out.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import json
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, ModuleSpec
from time import monotonic_ns
from types import ModuleType
from typing import Any

from bsplib.record import frames
from bsplib.record.build import cache_folder, shim_of
from bsplib.record.libraries import Library, NoShimError, find_library
from bsplib.record.program import (
    NO_CALL,
    PATIENCE_MS,
    RecordedProgram,
    rank_of_environment,
    say,
)


def _sampler() -> tuple[Any, str]:
    """Return a sampler of lines that has started; None, and why, where there can be none.

    It is loaded without the rest of the core, which loads numpy: a program may first say by the
    environment how many threads numpy has.
    """
    core = importlib.util.find_spec("bsplib.core")
    folder = ((core and core.submodule_search_locations) or [""])[0]
    finder = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES))
    shared, own = (
        finder.find_spec(f"bsplib.core.{name}") for name in ("_cython_shared", "sampling")
    )
    if shared is None or own is None:
        return None, "lines are sampled by the compiled core, which is not there"
    try:
        # What all compiled modules share is looked for by its name, which would load the core.
        sys.modules.setdefault(shared.name, _loaded(shared))
        module = _loaded(own)
    except (ImportError, OSError) as error:
        return None, f"the compiled sampler of lines cannot be loaded: {error}"
    sampler = module.Sampler()
    reason = sampler.start()
    return (None if reason else sampler), reason


class _MpiFinder:
    """Finds ``mpi4py.MPI`` as others do, and tells when it has been imported.

    The class inherits nothing from ``importlib.abc``, which would load modules that are not needed.

    Args:
        imported: is called with the module, before the program gets it.
    """

    def __init__(self, imported: Callable[[Any], None]) -> None:
        self._imported = imported
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  # as the import system calls it
        target: ModuleType | None = None,  # noqa: ARG002  # the same
    ) -> ModuleSpec | None:
        """Return what the other finders find, with a loader that tells."""
        if fullname != "mpi4py.MPI" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # for the search of the others, and for good
        spec = importlib.util.find_spec(fullname)
        loader: Any = spec and spec.loader
        if loader is not None:

            def execute(module: ModuleType) -> None:
                del loader.exec_module
                loader.exec_module(module)
                self._imported(module)

            loader.exec_module = execute
        return spec


def _loaded(spec: ModuleSpec) -> Any:
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None  # it is that of extension modules
    spec.loader.exec_module(module)
    return module


class ShimRecorder:
    """Records by the shim.

    Args:
        job: what is recorded.

    Raises:
        NoShimError: there is no shim for the library, and none can be compiled.
    """

    def __init__(self, job: RecordedProgram) -> None:
        cache = cache_folder()
        library = find_library(cache)
        path = shim_of(library, cache)
        try:
            self._shim = ctypes.CDLL(str(path), mode=os.RTLD_GLOBAL | os.RTLD_NOW)
        except OSError as error:
            raise NoShimError(f"its recorder cannot be loaded: {error}") from None
        self._pid = os.getpid()
        self.error = ""
        """The exception that ended the program."""
        self._stacks = frames.Stacks(self._write_stack)
        self._set_up(job, library)
        _MpiFinder(self._time_pickles)
        self._sampler, self._no_lines = _sampler()

    def _set_up(self, job: RecordedProgram, library: Library) -> None:
        header = json.dumps(job.header(library.name))[1:-1] + ","
        command = None
        if job.join is not None:
            texts = [os.fsencode(each) for each in job.join]
            command = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
        self._shim.bsp_record_setup(
            os.fsencode(job.folder),
            header.encode(),
            command,
            os.fsencode(job.by_hand),
            os.fsencode(job.recorded),
            ctypes.c_longlong(job.begin),
            PATIENCE_MS,
        )
        self._kept: tuple[Any, ...] = (
            frames.thread_state(),
            ctypes.CFUNCTYPE(ctypes.c_int)(self._stacks.number),
            (ctypes.c_int * 5)(*frames.offsets()),
        )
        self._shim.bsp_record_python(*self._kept)
        self._shim.bsp_record_closing.restype = ctypes.c_void_p
        closing: Callable[[int | None], int] = ctypes.pythonapi.Py_AtExit
        closing.argtypes = [ctypes.c_void_p]  # type: ignore[attr-defined]
        # Functions of Py_AtExit are called last, the first of them after that of mpi4py, which
        # calls MPI_Finalize.
        closing(self._shim.bsp_record_closing())
        atexit.register(self._python_ends)

    def _time_pickles(self, mpi: Any) -> None:
        """Note how long mpi4py makes and reads pickles; the shim writes it with its next row."""
        spent = (ctypes.c_int64 * 2).in_dll(self._shim, "bsp_record_pickles")

        def dumps(value: object, *options: Any, **more: Any) -> bytes:
            began_ns = monotonic_ns()
            data = pickle.dumps(value, *options, **more)
            spent[0] += monotonic_ns() - began_ns
            spent[1] += len(data)
            return data

        def loads(data: Any, **more: Any) -> Any:
            began_ns = monotonic_ns()
            value = pickle.loads(data, **more)
            spent[0] += monotonic_ns() - began_ns
            return value

        mpi.pickle.__init__(dumps, loads, mpi.pickle.PROTOCOL)

    def _write_stack(self, number: int, described: list[tuple[str, str, int, int, bool]]) -> None:
        self._write("stack", [number, described])

    def _write(self, kind: str, value: object) -> None:
        line = json.dumps([kind, value], separators=(",", ":")).encode() + b"\n"
        self._shim.bsp_record_line(line, ctypes.c_long(len(line)))

    def _python_ends(self) -> None:
        """Write what only Python can tell, after all functions of atexit of the program."""
        if os.getpid() != self._pid:
            return  # a process that the program has forked
        if not self._shim.bsp_record_was_initialized() and rank_of_environment() == 0:
            say(NO_CALL)
        if self._sampler is not None:
            stacks, ticks = self._sampler.stop()
            numbers = [self._stacks.number_of(each, is_cut=True) for each in stacks]
            self._write("samples", [(*tick[:4], numbers[tick.stack]) for tick in ticks])
        self._write("no_lines", self._no_lines)
        self._shim.bsp_record_python_ends(self.error.encode(errors="replace"))
