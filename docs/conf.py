"""How Sphinx builds the documentation: ``make docs`` writes it to build/docs.

Pages are Markdown (MyST). The pages of the repository link to files of the repository, such as
``../bsplib/core/core.py``; here such a link opens a copy of the file that belongs to the site.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pygments.lexers import PythonLexer

from bsplib import errors
from bsplib.cli import main as cli
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
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]

# -- Markdown -----------------------------------------------------------------------------------

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

INCLUDED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "explanation/contributing.md",
    "bsplib/backends/shm/PROTOCOL.md": "explanation/protocol_shm.md",
    "bsplib/backends/mpi/PROTOCOL.md": "explanation/protocol_mpi.md",
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
    """Return a page with what its comments stand for: errors and commands."""
    for mark, content in PARTS.items():
        if mark in text:
            text = text.replace(mark, content())
    return text


def _tree_of_errors() -> str:
    """Return the tree of errors, as their module draws it."""
    assert errors.__doc__ is not None
    tree = errors.__doc__.partition("::\n\n")[2].partition("The constructor")[0]
    return f"```text\n{textwrap.dedent(tree).rstrip()}\n```"


def _all_errors() -> str:
    names = [name for name, kind in vars(errors).items() if isinstance(kind, type)]
    entries = "".join(f".. autoexception:: bsplib.{name}\n" for name in names)
    return f"```{{eval-rst}}\n{entries}```"


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


def _gallery() -> str:
    """Return the pictures of the programs, which docs/gallery_pages.py has listed, if it has."""
    overview = ROOT / "docs/gallery/pages/overview.txt"
    return overview.read_text(encoding="utf-8") if overview.exists() else ""


PARTS = {
    "<!-- all programs of the gallery -->": _gallery,
    "<!-- the tree of errors -->": _tree_of_errors,
    "<!-- all errors -->": _all_errors,
    "<!-- all commands -->": _all_commands,
}
"""What the comments in pages stand for."""


def _source_of(docname: str) -> Path:
    """Return the file whose text a page has: of the page, or the one that it includes."""
    for source, page in INCLUDED.items():
        if page == f"{docname}.md":
            return ROOT / source
    return ROOT / "docs" / f"{docname}.md"


def read_page(_: Sphinx, docname: str, content: list[str]) -> None:
    """Replace the text of a page by that of the file which it includes, and mend its links."""
    source = _source_of(docname)
    if source.suffix == ".md" and source.exists():
        content[0] = rewrite_links(source, filled(source.read_text(encoding="utf-8")))
    if docname == "gallery/index" and not any((ROOT / "docs/gallery/pages").glob("*.md")):
        content[0] = re.sub(r"```{toctree}\n:glob:.*?```", "", content[0], flags=re.DOTALL)


# -- docstrings ---------------------------------------------------------------------------------

autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
add_module_names = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False

SECTION = re.compile(r"^(Supersteps|Cost|Source): ")


def separate_sections(
    _: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show the sections that bsplib adds to those of Google: each as a paragraph of its own."""
    del what, name, obj, options
    for number in reversed(range(len(lines))):
        if match := SECTION.match(lines[number]):
            lines[number] = f"**{match[1]}:** {lines[number][match.end() :]}"
            lines.insert(number, "")


_written: dict[str, list[str]] = {}
"""Docstrings of attributes, by name."""


def remember_attribute(
    _: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep the docstring of an attribute: napoleon takes what precedes a colon for a type."""
    del obj, options
    if what == "attribute":
        _written[name] = list(lines)


def restore_attribute(
    _: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show the docstring of an attribute as it is written."""
    del what, obj, options
    if name in _written:
        lines[:] = _written.pop(name)


def setup(app: Sphinx) -> None:
    """Connect the functions of this file."""
    app.add_lexer("ipython", PythonLexer)  # of cells of notebooks, where IPython is not installed
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", separate_sections, priority=400)
    app.connect("autodoc-process-docstring", remember_attribute, priority=400)
    app.connect("autodoc-process-docstring", restore_attribute, priority=600)


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
