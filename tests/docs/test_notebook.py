"""The cells of the page about notebooks, executed by a kernel as one notebook."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from .pages import DOCS, blocks, texts_of_picture

PAGE = DOCS / "howto" / "notebook.md"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # a kernel warns of its own


def test_the_cells_of_the_page_show_what_the_page_says(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # where it is set, a kernel shows no other process
    shown = [text for language, text in blocks(PAGE) if language == "text"]
    cells = [nbformat.v4.new_code_cell(text) for text in shown if text[0] == "%"]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()

    loaded, put, profiled, made, changed = (cell.outputs for cell in notebook.cells)
    assert loaded == made == []
    for outputs in (put, changed):
        assert outputs[-1].data["text/plain"] in PAGE.read_text(encoding="utf-8")
    verdict, picture = profiled[:2]
    assert verdict.text.strip() in [text.strip() for text in shown]
    expected = (PAGE.parent / "notebook.svg").read_text(encoding="utf-8")
    assert texts_of_picture(picture.data["image/svg+xml"]) == texts_of_picture(expected)
