"""Packages of extras are imported when they are used, and a sentence says which one is missing."""

from __future__ import annotations

import pickle
import sys

import pytest

import bsplib
from bsplib.extras import EXTRAS, need, optional_module


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Puts a package first on the path that runs the given code when it is imported."""

    def put(name, code):
        for loaded in [module for module in sys.modules if module.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, loaded)
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)

    return put


@pytest.mark.lengthy
def test_a_package_that_is_installed_is_returned():
    assert need("scipy.version") is sys.modules["scipy.version"]


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "pandas"]:
        monkeypatch.delitem(sys.modules, loaded)
    with pytest.raises(bsplib.MissingExtraError) as caught:
        need("pandas.api")
    assert str(caught.value) == (
        "this needs pandas, which is not installed; it is in the extra 'notebook': "
        "pip install pandas"
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ImportError('libarrow.so is missing')", "libarrow.so is missing"),
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
    ],
)
def test_a_package_that_cannot_be_imported_is_not_said_to_be_missing(broken, code, reason):
    broken("pyarrow", code)
    with pytest.raises(bsplib.MissingExtraError) as caught:
        need("pyarrow")
    assert f"pyarrow, which cannot be imported ({reason}); " in str(caught.value)
    assert str(caught.value).endswith("it is in the extra 'sql': pip install pyarrow")


def test_an_optional_module_is_imported_when_an_attribute_is_used(broken):
    broken("mpi4py", "VERSION = 3")
    module = optional_module("mpi4py")
    assert "mpi4py" not in sys.modules
    assert module.VERSION == 3
    assert "mpi4py" in sys.modules


def test_an_optional_module_that_is_missing_raises_at_the_first_use(broken):
    broken("pandas", "raise ModuleNotFoundError(\"No module named 'pandas'\", name='pandas')")
    module = optional_module("pandas")
    with pytest.raises(ImportError, match="pip install pandas"):
        _ = module.DataFrame


def test_an_optional_module_can_be_pickled_without_importing_it(broken):
    broken("mpi4py", "VERSION = 3")
    again = pickle.loads(pickle.dumps(optional_module("mpi4py")))
    assert "mpi4py" not in sys.modules
    assert again.VERSION == 3


def test_a_package_of_no_extra_is_refused_at_once():
    with pytest.raises(ValueError, match=r"numpy\.linalg is in no extra; the packages in extras"):
        optional_module("numpy.linalg")
    assert "numpy" not in EXTRAS
