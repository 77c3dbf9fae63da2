"""The time in which processes import modules inside ``main``, as the recorder notes it."""

from __future__ import annotations

import importlib
import sys
import threading
import time
import traceback
from importlib import _bootstrap
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path

import pytest

from bsplib.recording.import_clock import ImportClock
from tests.recordings import record_run

SLOW = (
    "import time\nended = time.thread_time() + {seconds}\nwhile time.thread_time() < ended: pass\n"
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that makes a module with a source and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def module(name, source):
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        made.append(name)
        return name

    yield module
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def clock():
    clock = ImportClock(0)
    yield clock
    clock.close()


def test_an_import_is_noted_with_all_that_it_imports(module, clock):
    module("inner_made", SLOW.format(seconds=0.02))
    importlib.import_module(module("outer_made", "import inner_made\n"))
    ((at_ns, cpu_ns),) = clock.found
    assert 0.02e9 <= cpu_ns < 2e9
    assert at_ns > 0


def test_a_module_that_fails_is_noted_and_raises_its_error(module, clock):
    name = module("wrong_made", "raise KeyError('x')\n")
    with pytest.raises(KeyError, match="x"):
        importlib.import_module(name)
    assert len(clock.found) == 1
    with pytest.raises(ModuleNotFoundError, match="nowhere_made"):
        importlib.import_module("nowhere_made")
    assert len(clock.found) == 2


def found_lazily(name):
    """Return a module that is executed at its first use."""
    spec = find_spec(name)
    spec.loader = LazyLoader(spec.loader)
    made = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.lengthy
def test_what_a_program_computes_before_it_uses_a_lazy_module_is_no_import(module, clock):
    lazy = found_lazily(module("lazy_made", SLOW.format(seconds=0.02) + "import inner_made\n"))
    importlib.import_module(module("inner_made", ""))
    began = time.thread_time()
    while time.thread_time() < began + 0.3:
        pass
    assert lazy.ended
    ((_, cpu_ns),) = clock.found
    assert cpu_ns < 0.02e9


def test_a_lazy_module_that_another_thread_uses_is_not_noted(module, clock):
    lazy = found_lazily(module("lazy_made", "made = True\n"))
    thread = threading.Thread(target=lambda: lazy.made)
    thread.start()
    thread.join()
    assert lazy.made
    assert not clock.found


def test_a_warning_about_an_import_names_the_line_that_imports(module, clock):
    module("old_made", "import warnings\nwarnings.warn('it is old', stacklevel=2)\n")
    with pytest.warns(UserWarning, match="it is old") as warned:
        import old_made  # noqa: F401, PLC0415
    assert warned[0].filename == __file__
    assert len(clock.found) == 1


def test_a_traceback_of_an_import_has_no_line_of_the_clock(module, clock):
    module("wrong_made", "raise KeyError('x')\n")
    with pytest.raises(KeyError, match="x") as raised:
        import wrong_made  # noqa: F401, PLC0415
    files = [Path(entry.filename).name for entry in traceback.extract_tb(raised.tb)]
    assert files == [Path(__file__).name, "wrong_made.py"]
    assert len(clock.found) == 1


def test_imports_of_other_threads_are_not_noted(module, clock):
    name = module("thread_made", "")
    thread = threading.Thread(target=importlib.import_module, args=(name,))
    thread.start()
    thread.join()
    assert name in sys.modules
    assert not clock.found


def test_a_closed_clock_notes_nothing(module, clock):
    clock.close()
    clock.close()
    importlib.import_module(module("late_made", ""))
    assert not clock.found
    assert type(clock) is not type(getattr(_bootstrap._find_and_load, "__self__", None))


@pytest.mark.fresh
@pytest.mark.parametrize("where", ["shm", "sim"])
def test_a_trace_of_real_processes_has_the_imports_of_each(module, tmp_path, where, monkeypatch):
    finders = [each for each in sys.meta_path if not type(each).__module__.startswith("_pytest")]
    monkeypatch.setattr(sys, "meta_path", finders)  # what loads tests loads many modules
    name = module("used_made", SLOW.format(seconds=0.01))

    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            importlib.import_module(name)
        bsp.sync()

    path = tmp_path / "run.bsp"
    run = record_run(path, main, nprocs=2, backend=where)
    if where == "sim":
        assert "imports" not in run.meta
        return
    none, ((at_ns, cpu_ns),) = run.meta["imports"]
    assert none == []
    (record,) = run.records[(run.records["pid"] == 1) & (run.records["superstep"] == 1)]
    assert record["start"] <= at_ns <= record["arrive"]
    assert cpu_ns >= 0.01e9
