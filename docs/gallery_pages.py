"""Make the pages of the gallery: run and record each program, and write its page and picture.

``python docs/gallery_pages.py FOLDER [NAME...]`` writes, for all programs or those named, a page
``NAME.md`` and the call graph ``NAME.svg``, and for the index ``overview.txt``.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "apps" / "gallery"
sys.path.insert(0, str(ROOT))  # whose packages are not all installed

TITLES = {
    "heat": "Heat on a plate, with halos",
    "heat3d": "Heat in a cube, with halos in three dimensions",
    "prefix_sums": "Prefix sums: a random walk",
    "monte_carlo": "Monte Carlo: the price of an option",
    "histogram": "A histogram in many parts",
    "kmeans": "K-means",
    "nbody": "N bodies",
    "conjugate_gradients": "Conjugate gradients",
    "word_count": "Word count",
    "farm": "A farm of tasks",
    "pipeline": "A pipeline of filters",
    "cannon": "Cannon's multiplication of matrices",
    "lu": "LU decomposition",
    "sparse_matrix_vector": "A sparse matrix times a vector",
    "fft": "The Fourier transform",
    "sample_sort": "Sorting by regular samples",
}
"""Programs in the order of the index, from the simple ones on."""
PROCESSES = {"cannon": 4}
"""Number of processes where it is not 2."""
SECTIONS = ("Cost", "Teaches", "Source")


class Recorded(NamedTuple):
    """What came of the run of a program."""

    seconds: str
    verdict: str
    """The first sentences of its report."""


class Text(NamedTuple):
    """The docstring of a program, as Markdown."""

    lead: str
    """Its first sentence."""
    about: str
    sections: dict[str, str]


def text_of(docstring: str) -> Text:
    """Return the parts of the docstring of a program."""
    marked = re.split(rf"^({'|'.join(SECTIONS)}): ", docstring.replace("``", "`"), flags=re.M)
    lead, _, about = marked[0].strip().partition("\n\n")
    parts = {
        name: f"{part[0].upper()}{part[1:].rstrip()}"
        for name, part in zip(marked[1::2], marked[2::2], strict=True)
    }
    return Text(" ".join(lead.split()), about, parts)


def sizes_of(module: Any) -> str:
    """Return the arguments with which a program runs by itself, or those of its input."""
    functions = [module.main, *([module.text] if hasattr(module, "text") else [])]
    return ", ".join(
        f"{each.name} = {each.default:,}".replace(",", " ")
        for function in functions
        for each in inspect.signature(function).parameters.values()
        if isinstance(each.default, int | float)
    )


def bsp(*words: str) -> str:
    """Run a command of ``bsp``; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bsplib", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"bsp {' '.join(words)}: {done.stderr}")
    return done.stdout


def record(name: str, nprocs: int, picture: Path) -> Recorded:
    """Run and record a program at its size, and draw its call graph."""
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder, f"{name}.bsp"))
        bsp("run", "-n", str(nprocs), "--profile", trace, "-m", f"bsplib.apps.gallery.{name}")
        bsp("export", trace, "--out", str(picture))
        head, *sentences = bsp("report", trace).partition("\n\n")[0].splitlines()
    seconds = re.search(r"(\d[\d.]* m?s), complete", head)
    assert seconds is not None, head
    return Recorded(seconds[1], " ".join(line.strip() for line in sentences))


def lines_of(name: str) -> int:
    """Return the number of lines of code of a program."""
    from benchmarks.whole.lines import lines_of_code  # noqa: PLC0415  # the path is set above

    return lines_of_code((PROGRAMS / f"{name}.py").read_text(encoding="utf-8"))


def included(name: str, folder: Path) -> str:
    """Return what shows a file of the gallery in a page."""
    path = Path(os.path.relpath(PROGRAMS / f"{name}.py", folder.resolve())).as_posix()
    return f"```{{literalinclude}} {path}\n:language: python\n```\n"


def page(name: str, folder: Path) -> str:
    """Record a program; return its page."""
    module = importlib.import_module(f"bsplib.apps.gallery.{name}")
    text, nprocs = text_of(inspect.getdoc(module) or ""), PROCESSES.get(name, 2)
    recorded = record(name, nprocs, folder / f"{name}.svg")
    sizes = sizes_of(module)
    source = text.sections.get("Source")
    command = f"bsp run -n {nprocs} --profile {name}.bsp -m bsplib.apps.gallery.{name}"
    parts = [
        f"# {TITLES[name]}\n\n{text.lead}\n\n{text.about}\n",
        f"**What it teaches.** {text.sections['Teaches']}\n",
        f"**Its cost.** {text.sections['Cost']}\n",
        f"**Source.** {source}\n" if source else "",
        f"```{{figure}} {name}.svg\n:alt: The call graph of {name}, shaded by loss\n\n"
        f"Recorded when this page was made: p = {nprocs}, {sizes}; {recorded.seconds}. "
        f"The redder a box, the more of the time is lost there.\n```\n",
        f"```sh\n{command}\nbsp view {name}.bsp\n```\n",
        f"`bsp report {name}.bsp` begins:\n\n> {recorded.verdict}\n",
        f"## The program\n\n{included(name, folder)}",
        beside(name, folder),
    ]
    return "\n".join(part for part in parts if part)


def beside(name: str, folder: Path) -> str:
    """Return the part of a page about the same program in mpi4py; empty where there is none."""
    peer = f"{name}_mpi4py"
    if not (PROGRAMS / f"{peer}.py").exists():
        return ""
    return (
        f"## The same in mpi4py\n\nThe program above has {lines_of(name)} lines of code, this one "
        f"{lines_of(peer)}; blank lines, comments and docstrings do not count.\n\n"
        f"{included(peer, folder)}"
    )


def overview() -> str:
    """Return the part of the index that shows all programs."""
    parts = []
    for name, title in TITLES.items():
        text = text_of(inspect.getdoc(importlib.import_module(f"bsplib.apps.gallery.{name}")) or "")
        parts.append(
            f"## [{title}](pages/{name}.md)\n\n{text.lead}\n\n"
            f"```{{image}} pages/{name}.svg\n:alt: The call graph of {name}\n:width: 360px\n"
            f":target: pages/{name}.html\n```\n"
        )
    return "\n".join(parts)


def main(folder: Path, names: Sequence[str]) -> None:
    """Write the pages of some programs, and the overview."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.md").write_text(page(name, folder), encoding="utf-8")
    (folder / "overview.txt").write_text(overview(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or [*TITLES])
