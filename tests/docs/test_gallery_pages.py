"""The pages of the gallery are made by programs that run and are recorded."""

from __future__ import annotations

import importlib
import re
import runpy

import pytest

from bsplib.apps.gallery import references

from .pages import ROOT

MADE = runpy.run_path(str(ROOT / "docs" / "gallery_pages.py"))
INCLUDED = re.compile(r"^```\{literalinclude\} (.*)$", re.MULTILINE)


def test_every_program_of_the_gallery_has_a_page():
    assert sorted(MADE["TITLES"]) == sorted(references.OF)


@pytest.mark.parametrize("name", MADE["TITLES"])
def test_the_docstring_of_a_program_has_what_its_page_says(name):
    module = importlib.import_module(f"bsplib.apps.gallery.{name}")
    text = MADE["text_of"](module.__doc__)
    assert text.lead.endswith(".")
    assert text.about
    assert {"Cost", "Teaches"} <= text.sections.keys()
    assert " g + " in text.sections["Cost"]
    assert text.sections["Teaches"][:12].lower() == after(module.__doc__, "Teaches: ")
    assert "``" not in text.about + "".join(text.sections.values())
    assert re.fullmatch(
        r"\w+ = [\d. ]+(e-\d+)?(, \w+ = [\d. ]+(e-\d+)?)*", MADE["sizes_of"](module)
    )


def after(docstring, name):
    return docstring.partition(name)[2].replace("``", "`")[:12].lower()


def test_the_index_of_the_repository_lists_every_program():
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    for name, title in MADE["TITLES"].items():
        assert f"\n- [{title}](../../apps/gallery/{name}.py)" in index


@pytest.mark.slow
def test_a_page_has_the_call_graph_of_a_run_at_the_size_that_it_names(tmp_path):
    MADE["main"](tmp_path, ["monte_carlo"])
    page = (tmp_path / "monte_carlo.md").read_text(encoding="utf-8")
    assert page.startswith("# Monte Carlo")
    assert "p = 2, error = 0.007, batch = 20 000, days = 64; " in page
    assert [(tmp_path / path).resolve().name for path in INCLUDED.findall(page)] == [
        "monte_carlo.py",
        "monte_carlo_mpi4py.py",
    ]
    assert all((tmp_path / path).exists() for path in INCLUDED.findall(page))
    picture = (tmp_path / "monte_carlo.svg").read_text(encoding="utf-8")
    assert "main" in picture
    assert "allreduce" in picture
