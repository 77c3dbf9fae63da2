"""Change a line of the product, and see whether the tests notice: ``make mutants``.

A sample of lines is drawn from every room by a seed. Each is changed in one place: a comparison, a
logical or arithmetic operator, a number, a condition, a value that is returned, or a statement that
is dropped. Then the files of tests run that name its module, and after them the quick tests of its
room. A mutant is *killed* if a test fails or hangs that passes without the change, and otherwise it
*lives*: then it is equivalent, or a test is missing. The core is mutated where it is interpreted.

The tests run in copies of the tree; the working tree is never changed. The outcome is JSON, and is
written after each mutant, so that a run that is ended has what was found until then.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

import click
from rich.progress import track

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 600
"""Tests that take longer with a mutant are ended; pyproject.toml ends a single one earlier."""
KILLED, LIVING, UNSOUND = "killed", "living", "unsound"
"""Unsound is a mutant with which a test fails that fails anyway."""
PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
    (ast.LShift, ast.RShift),
)
OTHER_OPERATORS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
OTHER_OPERATORS |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}
FALSE_AS_NONE = ("None", "False", "0", "''", "()", "[]", "{}")
"""Values in whose place a caller that asks only whether they are true takes None as well."""


@dataclass
class Mutant:
    """A change of one place, in bytes of a file, and what the tests said."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    outcome: str = ""
    by: str = ""


def room_of(file: str) -> str:
    """Return the folder of a file, one below the package where it is bsplib."""
    return "/".join(file.split("/")[: 2 if re.match("bsplib/.*/", file) else 1])


def sources() -> list[str]:
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def changed(node: ast.AST) -> ast.AST | None:
    """Return a node with one change; None where it is of no kind that is changed."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op, *more]):
            new.ops = [OTHER_OPERATORS[type(op)](), *more]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op):
            if type(op) not in OTHER_OPERATORS:
                return None
            new.op = OTHER_OPERATORS[type(op)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value) | float(value)):
            new.value = value + 1
        case ast.IfExp(test=test):
            new.test = ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in FALSE_AS_NONE:
            new.value = None
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return ast.Pass()
        case _:
            return None
    return new


def places(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, without what only type checkers and readers see."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            if isinstance(child, ast.AST) and not is_typing:
                if hasattr(child, "lineno"):
                    yield child
                yield from places(child)


def mutants_of(file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    data = (ROOT / file).read_bytes()
    starts = [0, *(place.end() for place in re.finditer(rb"\n", data))]
    for node in places(ast.parse(data)):
        new = changed(node)
        if new is not None:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(ast.fix_missing_locations(new))
            after = f"({text})" if isinstance(new, ast.expr) else text
            yield Mutant(file, node.lineno, start, end, data[start:end].decode(), after)


def sample(count: int, seed: int, only: str) -> list[Mutant]:
    """Draw mutants from all rooms in turn, at most one of a line."""
    files = [name for name in sources() if re.match(r"(bsplib|profiler|webui|apps)/.*\.py$", name)]
    every = [mutant for file in files if only in file for mutant in mutants_of(file)]
    random.Random(seed).shuffle(every)
    rooms: dict[str, list[Mutant]] = {}
    for mutant in {(mutant.file, mutant.line): mutant for mutant in every}.values():
        rooms.setdefault(room_of(mutant.file), []).append(mutant)
    ranked = [(rank, mutant) for each in rooms.values() for rank, mutant in enumerate(each)]
    return [mutant for _, mutant in sorted(ranked, key=lambda each: each[0])][:count]


def tests_that_name(file: str) -> list[str]:
    """Return the files of tests that name a module in an import or in their own name."""
    dotted = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    dotted = dotted if dotted.startswith("bsplib") else f"bsplib.{dotted}"
    package, _, stem = dotted.rpartition(".")
    names = rf"import .*\b{package}\.{stem}\b|from {package}\.{stem} import|"
    names += rf"from {package} import [^\n]*\b{stem}\b"
    found = []
    for name in sources():
        if re.match(r"tests/.*test_\w+\.py$", name):
            is_of_it = f"test_{stem.strip('_')}.py" == Path(name).name
            if is_of_it or re.search(names, (ROOT / name).read_text(encoding="utf-8")):
                found.append(name)
    return found


def tests_of(file: str) -> Iterator[list[str]]:
    """Yield what is run of the tests: those of the module, then the quick ones of the room."""
    if named := tests_that_name(file):
        yield named
    room = room_of(file)
    folders = {"bsplib/core": ("bsplib/core", "bsplib"), "bsplib/record": ("record",)}
    for folder in folders.get(room, (room.partition("/")[0],)):
        yield ["-m", "quick", f"tests/{folder}"]


def pytest(folder: Path, *arguments: str, core: str) -> tuple[int, str]:
    """Run tests in a copy of the tree; return the status, and the test that failed."""
    variables = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables | {"BSPLIB_CORE": core},
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            status = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return -1, ""
        output.seek(0)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output.read(), re.MULTILINE)
    return status, failed[0] if failed else ""


def try_out(mutant: Mutant, folder: Path) -> None:
    """Run the tests on a mutant, and note the outcome in it."""
    path = folder / mutant.file
    data = path.read_bytes()
    core = "python" if room_of(mutant.file) == "bsplib/core" else "compiled"
    mutant.outcome = LIVING
    for tests in tests_of(mutant.file):
        path.write_bytes(data[: mutant.start] + mutant.after.encode() + data[mutant.end :])
        status, failed = pytest(folder, "-x", *tests, core=core)
        path.write_bytes(data)
        if status not in (0, 5):  # 5: these tests have no case that is run
            mutant.by = failed or ("no end" if status == -1 else "no start")
            fails_anyway = failed and pytest(folder, failed, core=core)[0] == 1
            mutant.outcome = UNSOUND if fails_anyway else KILLED
            break


def copied(folder: Path) -> Path:
    """Copy the tree, with the extension modules of the core."""
    folder.mkdir()
    built = [path for way in ("bsplib/core/_built*", "*/*/*.so") for path in ROOT.glob(way)]
    names = "\0".join([*sources(), *(str(path.relative_to(ROOT)) for path in built)])
    command = ["cp", "--parents", "--no-dereference", "--target-directory", str(folder)]
    subprocess.run(["xargs", "-0", *command], input=names, text=True, cwd=ROOT, check=True)
    return folder


@click.command()
@click.option("--count", default=300, help="Number of mutants.")
@click.option("--seed", default=0, help="Another seed draws other ones.")
@click.option("--only", default="", help="Only files whose path has this text.")
@click.option("--jobs", default=2, help="Mutants that are tried out at once.")
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "out" / "mutants.json")
def main(count: int, seed: int, only: str, jobs: int, out: Path) -> None:
    """Change lines of the product, and see whether the tests notice."""
    mutants, free = sample(count, seed, only), SimpleQueue[Path]()
    out.parent.mkdir(parents=True, exist_ok=True)

    def in_a_copy(mutant: Mutant) -> Mutant:
        own = free.get()
        try:
            try_out(mutant, own)
        finally:
            free.put(own)
        return mutant

    with tempfile.TemporaryDirectory(prefix="mutants-") as name, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            free.put(copied(Path(name, f"tree{number}")))
        waiting = [pool.submit(in_a_copy, mutant) for mutant in mutants]
        for done in track(as_completed(waiting), "mutants", total=len(waiting)):
            tried = done.result()
            if tried.outcome != KILLED:
                place = f"{tried.file}:{tried.line}"
                click.echo(f"{tried.outcome}: {place}: {tried.before!r} -> {tried.after!r}")
            known = [asdict(mutant) for mutant in mutants if mutant.outcome]
            out.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    for outcome in (KILLED, LIVING, UNSOUND):
        click.echo(f"{outcome}: {sum(mutant.outcome == outcome for mutant in mutants)}")


if __name__ == "__main__":
    main()
