"""Joins the page's modules into one script, for a page that is saved as one file.

A saved page cannot load modules from files, and its Content-Security-Policy allows a script
by the hash of its text. Each module becomes a function whose result holds what it exports.
The modules are written in a restricted form, so that no parser is needed::

    import { a, b as c } from "./other.js";   at the beginning of a line, on one line or more
    export function d() {}                    or: export async function, const or class
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bsplib.errors import BspError

if TYPE_CHECKING:
    from pathlib import Path

_IMPORT = re.compile(r'^import \{([\w\s,]+)\} from "\./([\w-]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_RENAMED = re.compile(r"\b(\w+) as (\w+)\b")
_OTHER_FORM = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)


class BundleError(BspError):
    """A module of the page is not written in the form that can be joined."""


def bundle(folder: Path, entry: str) -> str:
    """Return one script with a module and all modules that it imports.

    Args:
        folder: the folder of the modules.
        entry: name of the module that is run, without ``.js``.

    Raises:
        BundleError: a module imports or exports in another form, or modules import each
            other in a circle; the text names them.
    """
    parts = [_as_function(folder, name) for name in in_order(folder, entry)]
    return '"use strict";\n' + "\n".join(parts)


def in_order(folder: Path, entry: str) -> list[str]:
    """Return the names of a module and all that it imports, each after those it imports.

    Raises:
        BundleError: modules import each other in a circle.
    """
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " -> ".join((*above[above.index(name) :], name))
            raise BundleError(f"the modules {circle} import each other: move what both need.")
        if name in order:
            return
        for other in imported(_source(folder, name)):
            visit(other, (*above, name))
        order.append(name)

    visit(entry, ())
    return order


def imported(source: str) -> list[str]:
    """Return the names of the modules that a module imports."""
    return [match[2] for match in _IMPORT.finditer(source)]


def _source(folder: Path, name: str) -> str:
    return (folder / f"{name}.js").read_text(encoding="utf-8")


def _as_function(folder: Path, name: str) -> str:
    """Return a module as the declaration of an object with what it exports."""
    source = _source(folder, name)
    exported = ", ".join(match[2] for match in _EXPORT.finditer(source))
    body = _IMPORT.sub(_as_declaration, source)
    body = _EXPORT.sub(r"\1 \2", body)
    if wrong := _OTHER_FORM.search(body):
        raise BundleError(f"{name}.js has a line that cannot be joined: {wrong[0].strip()}")
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _as_declaration(statement: re.Match[str]) -> str:
    """Return an import as the declaration of the same names."""
    names = _RENAMED.sub(r"\1: \2", statement[1])
    return f"const {{{names}}} = {_variable(statement[2])};"


def _variable(name: str) -> str:
    return "module_" + name.replace("-", "_")
