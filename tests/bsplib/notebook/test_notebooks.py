"""Whole notebooks with ``%%bsp``, executed by a kernel."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # a kernel warns of its own


def executed(*cells):
    """Outputs of each cell of a notebook."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, allow_errors=True, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_notebook_runs_cells_and_shows_a_call_graph(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # where it is set, a kernel shows no other process
    _, _, first, profiled, wrong = executed(
        "%load_ext bsplib",
        "import numpy as np\nweights = np.arange(4.0)\n"
        "def total(bsp, x):\n    return float(bsp.allreduce(x.sum()))",
        "%%bsp -n 2\nprint('begins')\ntotal(bsp, weights + bsp.pid)",
        "%%bsp -n 2 --profile\ntotal(bsp, weights)",
        "%%bsp -n 2\nbsp.send(2, weights)",
    )
    printed = "".join(output.text for output in first if output.output_type == "stream")
    assert sorted(printed.split("\n")) == ["", "[0] begins", "[1] begins"]
    assert first[-1].data["text/plain"] == "[16.0, 16.0]"
    (picture,) = [output for output in profiled if output.output_type == "display_data"]
    assert picture.data["image/svg+xml"].startswith("<svg")
    assert "notebook" in picture.data["image/svg+xml"]
    assert "total" in picture.data["image/svg+xml"]
    assert profiled[-1].data["text/plain"] == "[12.0, 12.0]"
    (error,) = wrong
    assert error.ename == "ProcessRangeError"
    assert (
        "send: there is no process 2 among 2 (0 to 1) [process 0, superstep 0, In[5]:2]"
        in (error.traceback[0])
    )
