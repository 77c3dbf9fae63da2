"""How Sphinx builds the documentation: ``make docs`` writes it to build/docs.

Pages are Markdown (MyST). The pages of the repository link to files of the repository, such as
``../bsplib/core/engine.py``; here such a link opens a copy of the file that belongs to the site.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pygments.lexers import PythonLexer

from bsplib.tools.cli import main as cli
from bsplib.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

project = "bsplib"
author = "the bsplib authors"
copyright = author  # noqa: A001  # the name that Sphinx gives it
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx_copybutton",
]

# -- Markdown -----------------------------------------------------------------------------------

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

MADE = runpy.run_path(str(ROOT / "docs" / "made_parts.py"))["made"]
INCLUDED = {
    "CHANGELOG.md": "maintaining/changelog.md",
    "CONTRIBUTING.md": "maintaining/contributing.md",
    "bsplib/backends/shm/PROTOCOL.md": "maintaining/protocol_shm.md",
    "bsplib/backends/mpi/PROTOCOL.md": "maintaining/protocol_mpi.md",
}
"""Pages that stand elsewhere in the repository, and the page of the site that includes each."""
LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([\w./-]+)((?:#[\w-]*)?)\)")
"""A link to a page or a file: its text, the path and the anchor."""


def link_on_the_site(page: Path, target: str) -> str | None:
    """Return where a relative link of a page leads on the site; None for a folder.

    Args:
        page: the file with the link, in the repository.
        target: the link, without its anchor.
    """
    path = (page.parent / target).resolve()
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return None
    if path.is_relative_to(ROOT / "docs"):
        return f"/{path.relative_to(ROOT / 'docs').as_posix()}"
    return f"/{INCLUDED[name]}" if name in INCLUDED else f"/../{name}"


def rewrite_links(page: Path, text: str) -> str:
    """Return a page whose links to files of the repository work on the site.

    A link to a folder becomes its text, since the site has no folders of the repository.
    """

    def rewritten(match: re.Match[str]) -> str:
        shown, target, anchor = match.groups()
        found = link_on_the_site(page, target)
        if found is None:
            return shown
        text = "" if shown.endswith(".md") else shown  # the site shows the title of the page
        return f"[{text}]({found}{anchor})"

    return LINK.sub(rewritten, text)


def filled(text: str) -> str:
    """Return a page with what only the site has, in place of its parts."""
    text = MADE(text, whole=True)
    for name, content in PARTS.items():
        if (new := content()) is not None:
            part = re.compile(rf"<!-- {name} -->\n.*?<!-- end -->", re.DOTALL)
            text = part.sub(lambda _, new=new: new, text)
    return text


def contents(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the tables of contents of an index: a heading, and the pages listed below it.

    Args:
        text: the index, whose links are those of the site.
    """
    seen: set[str] = set()
    for section in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        heading = re.match(r"## (.*)", section)
        listed = "\n".join(re.findall(r"^(?:- \[|\| ).*", section, re.MULTILINE))
        links = dict.fromkeys(re.findall(r"\]\((/[\w/]+)\.md(?:#[\w-]*)?\)", listed))
        names = [name for name in links if name not in seen]
        seen.update(names)
        if names:
            yield heading[1] if heading else "", names


def with_contents(text: str) -> str:
    """Return an index with its tables of contents, which the site shows at the side."""
    for heading, names in contents(text):
        caption = f":caption: {heading}\n" if heading else ""
        entries = "\n".join(names)
        text += f"\n```{{toctree}}\n:hidden:\n{caption}\n{entries}\n```\n"
    return text


def _all_commands() -> str:
    """Return the help of every command of ``bsp``."""
    widths = {"max_content_width": 90, "terminal_width": 90}
    return "\n".join(_helps(click.Context(cli, info_name="bsp", **cli.context_settings | widths)))


def _helps(context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from _helps(click.Context(command, parent=context, info_name=name))


def _gallery() -> str | None:
    """Return the pictures of the programs, which docs/gallery_pages.py has listed, if it has."""
    overview = ROOT / "docs/gallery/pages/overview.txt"
    if not overview.exists():
        return None
    listed = "```{toctree}\n:glob:\n:hidden:\n\npages/*\n```\n"
    return f"{overview.read_text(encoding='utf-8')}\n{listed}"


PARTS = {"all programs": _gallery, "all commands": _all_commands}
"""What makes the parts of pages that differ on the site; None: they do not."""


def _source_of(docname: str) -> Path:
    """Return the file whose text a page has: of the page, or the one that it includes."""
    for source, page in INCLUDED.items():
        if page == f"{docname}.md":
            return ROOT / source
    return ROOT / "docs" / f"{docname}.md"


def page_of(docname: str) -> str:
    """Return the text of a page of the site."""
    source = _source_of(docname)
    text = rewrite_links(source, filled(source.read_text(encoding="utf-8")))
    return with_contents(text) if docname.endswith("index") else text


def read_page(_: Sphinx, docname: str, content: list[str]) -> None:
    """Replace the text of a page of the repository by that of the site."""
    if _source_of(docname).exists():
        content[0] = page_of(docname)


def setup(app: Sphinx) -> None:
    """Connect the functions of this file."""
    app.add_lexer("ipython", PythonLexer)  # of cells of notebooks, where IPython is not installed
    app.connect("source-read", read_page)


# -- the site -----------------------------------------------------------------------------------

html_theme = "furo"
html_title = "bsplib"
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # a browser does not fetch pages of a folder
html_theme_options = {"footer_icons": []}
html_static_path = ["_static"]
html_css_files = ["site.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
pygments_style = "friendly"
pygments_dark_style = "monokai"
