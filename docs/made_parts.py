"""Write into the pages what is made from the program: reference, errors, commands, gallery.

``python docs/made_parts.py`` does so. What is made stands between ``<!-- NAME -->`` and
``<!-- end -->``; NAME is that of an object, or one of ``PARTS``. In the repository an entry has the
signature, the first paragraph of the docstring and the cost; the site has the whole docstring.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # whose packages are not all installed

PART = re.compile(r"<!-- ([\w. ]+) -->\n.*?<!-- end -->", re.DOTALL)
"""A part of a page that is made."""
_MEMBERS = " with members"
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
_SECTION = re.compile(r"^(Args|Returns|Raises|Warns|Yields):\n((?:\n|    .*\n)+)", re.MULTILINE)
_SENTENCE = re.compile(r"^(Supersteps|Cost|Source): ", re.MULTILINE)
_ITEM = re.compile(r"^(\*{0,2}\w+): ", re.MULTILINE)
_LITERAL = re.compile(r"(\S*)::\n\n((?:\n|    .*\n)+)")
_SESSION = re.compile(r"^((?:>>> .*\n)(?:.+\n)*)", re.MULTILINE)
_WIDTH = 90


def made(page: str, *, whole: bool = False) -> str:
    """Return a page with all its parts as they are to be now.

    Args:
        page: text of a page.
        whole: show whole docstrings.
    """
    text = page
    for match in PART.finditer(page):
        level = len(re.findall(r"^(#+) ", PART.sub("", page[: match.start()]), re.MULTILINE)[-1])
        name = match[1]
        entries = _entries(name, level + 1, whole=whole)
        content = PARTS[name]() if name in PARTS else "\n".join(entries)
        shown = f"<!-- {name} -->\n\n{content.strip()}\n\n<!-- end -->"
        text = text.replace(match[0], re.sub(r"\n{3,}", "\n\n", shown))
    return text


def _entries(name: str, level: int, *, whole: bool) -> Iterator[str]:
    """Yield the entry of an object and, where they are wanted, those of its members."""
    name, wanted, _ = name.partition(_MEMBERS)
    owner, _, last = name.rpartition(".")
    yield _entry(_found(owner), last, level, owner, whole=whole)
    if wanted:
        kind = _found(name)
        members = [
            member
            for member, value in vars(kind).items()
            if member[0] != "_" and (callable(value) or _is_method(value)) and value.__doc__
        ]
        for member in members:
            yield _entry(kind, member, level + 1, name, whole=True) if whole else _row(kind, member)


def _row(kind: type, member: str) -> str:
    """Return a row of a list: a member of a class with the first paragraph of its docstring."""
    value = getattr(kind, member)
    said = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return f"- `{member}{_signature(value)}`: {_inline(said)}"


def _is_method(value: object) -> bool:
    return isinstance(value, property | classmethod | staticmethod)


def _found(name: str) -> Any:
    """Return a module, or an object in one."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        owner, _, last = name.rpartition(".")
        return getattr(_found(owner), last)


def _entry(owner: Any, name: str, level: int, owner_name: str, *, whole: bool) -> str:
    """Return heading, signature and docstring of an object."""
    value = getattr(owner, name)
    prefix = "bsp" if owner_name == "bsplib.Group" else owner_name
    if inspect.isclass(owner) and prefix != "bsp":
        prefix = owner.__name__
    fields = _fields(value) if whole and inspect.isclass(value) else ""
    docstring = inspect.getdoc(value) or ""
    said = docstring if whole else _short(docstring)
    signature = textwrap.fill(
        f"{prefix}.{name}{_signature(value)}", _WIDTH, subsequent_indent="    "
    )
    return f"{'#' * level} `{name}`\n\n```py\n{signature}\n```\n\n{_markdown(said)}\n{fields}"


def _short(docstring: str) -> str:
    """Return the first paragraph of a docstring, and what it says of the cost."""
    first, *others = docstring.split("\n\n")
    return "\n\n".join([first, *(each for each in others if _SENTENCE.match(each))])


def _signature(value: Any) -> str:
    """Return the parameters of a call with their defaults; nothing for an attribute."""
    if not callable(value) or (inspect.isclass(value) and value.__init__ is object.__init__):
        return ""
    if inspect.isclass(value) and value.__name__ in {"Group", "BspTrace"}:
        return ""  # the program makes none
    signature = inspect.signature(value)
    parameters = [
        each.replace(
            annotation=inspect.Parameter.empty,
            default=_Shown(each.default) if inspect.isclass(each.default) else each.default,
        )
        if each.default is not inspect.Parameter.empty
        else each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name not in ("self", "bsp")
    ]
    shown = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return str(shown).replace("=<factory>", "=...")


class _Shown:
    """A class as a default, shown by its name."""

    def __init__(self, value: type) -> None:
        self._name = value.__name__

    def __repr__(self) -> str:
        return self._name


def _fields(kind: type) -> str:
    """Return the attributes of a class that are written with a docstring."""
    (written,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(written, ast.ClassDef)
    rows = []
    for each, text in zip(written.body, written.body[1:], strict=False):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            said = _text_of(text)
            if each.target.id[0] != "_" and said:
                rows.append(f"- `{each.target.id}`: {_inline(' '.join(said.split()))}\n")
    return "\n**Attributes:**\n\n" + "".join(rows) if rows else ""


def _text_of(statement: ast.stmt) -> str:
    """Return the text that a statement consists of; empty where it is another."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _inline(text: str) -> str:
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def _markdown(docstring: str) -> str:
    """Return a docstring in Markdown."""
    text = _SECTION.sub(_section, _inline(f"{docstring}\n"))
    text = _SENTENCE.sub(r"\n**\1:** ", text)
    text = _LITERAL.sub(
        lambda found: f"{found[1]}:\n\n```text\n{textwrap.dedent(found[2]).strip()}\n```\n\n", text
    )
    text = _SESSION.sub(r"```python\n\1```\n", text)
    return f"{text.strip()}\n"


def _section(found: re.Match[str]) -> str:
    """Return a section of Google's form: a list where it has names, else a sentence."""
    name, content = found[1], textwrap.dedent(found[2]).strip("\n")
    if name in {"Args", "Raises", "Warns"}:
        items = _ITEM.sub(r"- `\1`: ", content).replace("\n    ", "\n  ")
        return f"**{name}:**\n\n{items}\n\n"
    return f"**{name}:** {content}\n\n"


def _tree_of_errors() -> str:
    """Return the tree of errors, as their module draws it."""
    tree = importlib.import_module("bsplib.errors").__doc__
    assert tree is not None
    drawn = tree.partition("::\n\n")[2].partition("The constructor")[0]
    return f"```text\n{textwrap.dedent(drawn).rstrip()}\n```"


def _all_commands() -> str:
    """Return the commands with the first sentence of their help, which the site has whole."""
    commands = importlib.import_module("bsplib.tools.cli").main.commands
    rows = [
        f"| `bsp {name}` | {' '.join(command.help.split(chr(10) * 2)[0].split())} |"
        for name, command in sorted(commands.items())
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def _gallery() -> str:
    """Return the programs of the gallery; the site has a page of each."""
    pages = runpy.run_path(str(DOCS / "gallery_pages.py"))
    rows = []
    for name, title in pages["TITLES"].items():
        peer = DOCS.parent / f"apps/gallery/{name}_mpi4py.py"
        same = f" ([in mpi4py](../../apps/gallery/{peer.name}))" if peer.exists() else ""
        rows.append(f"- [{title}](../../apps/gallery/{name}.py){same}")
    return "\n".join(rows)


PARTS = {
    "all programs": _gallery,
    "the tree of errors": _tree_of_errors,
    "all commands": _all_commands,
}
"""What makes the parts that are no entry of an object."""


def main() -> None:
    """Write the parts into all pages that have them."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if (now := made(text)) != text:
            page.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    main()
