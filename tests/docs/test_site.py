"""The site builds without a warning, and shows its pages without a network."""

from __future__ import annotations

import re
import sys

import pytest

from tests.processes import run_command

from .pages import ROOT

pytest.importorskip("furo", reason="needs the extra docs: make docs installs it")
pytest.importorskip("myst_parser", reason="needs the extra docs: make docs installs it")

LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]+\"")
STYLE = re.compile(r"(?:url\(|@import\s)['\"]?(?:https?:)?//")


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_loads_nothing_from_a_network(tmp_path):
    build = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    done = run_command(*build, ROOT / "docs", tmp_path, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    assert [page for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []
    styles = list(tmp_path.rglob("*.css"))
    assert [page for page in styles if STYLE.search(page.read_text(encoding="utf-8"))] == []
