"""Change a line of the product, and see whether the tests notice: ``make mutants``.

A sample of lines is drawn from every room by a seed. Each is changed in one place: a comparison, a
logical or arithmetic operator, a number, a condition, a value that is returned, or a statement that
is dropped. At first the quick tests run once and note which functions each of them calls
(called.py). With a mutant those run that call its function, and then the files of tests that name
its module. A mutant is *killed* if a test fails or hangs that passes without the
change, and otherwise it *lives*: then it is equivalent, or a test is missing. The core is mutated
where it is interpreted.

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
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

import click
from rich.progress import track

from . import called

ROOT = Path(__file__).resolve().parents[1]
LEAST_IN_A_ROOM = 20
LIMIT_S = 600
"""Tests that take longer with a mutant are ended; pyproject.toml ends a single one earlier."""
WATCH_LIMIT_S = 1800
"""The same for the quick tests while their calls are noted."""
WATCHED = {
    "compiled": (
        "tests/bsplib",
        "tests/profiler",
        "tests/webui",
        "tests/apps",
        "tests/record",
        "--ignore=tests/bsplib/test_timeout.py",
    ),
    "python": (
        "tests/bsplib/core",
        *(
            f"tests/bsplib/test_{name}.py"
            for name in ("collectives", "get", "messages", "put", "oblsync", "partition", "sync")
        ),
    ),
}
"""The tests whose calls are noted, by the core on which they run. The exceptions by which a timeout
ends a run do not reach a thread whose calls are noted."""
MOST_TESTS, MOST_FILES = 60, 8
"""As many of those run that call the function of a mutant."""
OUTCOMES = KILLED, LIVING, UNSOUND = "killed", "living", "unsound"

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
FALSE_AS_NONE = ("None", "False", "0", "''", "()", "[]", "{}")
"""Values in whose place a caller that asks only whether they are true takes None as well."""


@dataclass
class Mutant:
    """A change of one place."""

    room: str
    file: str
    line: int
    start: int
    """Where the place begins in the file, in bytes."""
    end: int
    before: str
    after: str
    function: int
    """The line in which the function begins, with its decorators; 0 outside of functions."""
    outcome: str = ""
    by: str = ""
    """The test that failed, or what else ended the tests."""
    seconds: float = 0.0


def room_of(path: Path) -> str:
    parts = path.parts
    return parts[0] if parts[0] != "bsplib" or len(parts) < 3 else "/".join(parts[:2])


def sources() -> list[str]:
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def changed(node: ast.AST) -> ast.AST | None:
    """Return a node with one change; None where it is of no kind that is changed."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op, *more]) if type(op) in COMPARISONS:
            new.ops = [COMPARISONS[type(op)](), *more]
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            new.op = ARITHMETIC[type(op)]()
        case ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            new.op = ARITHMETIC[type(op)]()
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
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return ast.Pass()
        case _:
            return None
    return new


def places(node: ast.AST, function: int = 0) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes below a node and the line in which the function of each begins.

    What only type checkers and readers see is left out.
    """
    if isinstance(node, ast.FunctionDef):
        function = min(line.lineno for line in (node, *node.decorator_list))
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            if isinstance(child, ast.AST) and not is_typing:
                if hasattr(child, "lineno"):
                    yield child, function
                yield from places(child, function)


def mutants_of(file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    data = (ROOT / file).read_bytes()
    starts = [0, *(place.end() for place in re.finditer(rb"\n", data))]
    for node, function in places(ast.parse(data)):
        new = changed(node)
        if new is None:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(ast.fix_missing_locations(new))
        after = f"({text})" if isinstance(new, ast.expr) else text
        before = data[start:end].decode()
        yield Mutant(room_of(Path(file)), file, node.lineno, start, end, before, after, function)


def sample(count: int, seed: int, only: str) -> list[Mutant]:
    """Draw mutants: some from every room, the others from all; at most one of a line."""
    files = [name for name in sources() if re.match(r"(bsplib|profiler|webui|apps)/.*\.py$", name)]
    every = [mutant for file in files if only in file for mutant in mutants_of(file)]
    random.Random(seed).shuffle(every)
    lines = list({(mutant.file, mutant.line): mutant for mutant in every}.values())
    rooms = sorted({mutant.room for mutant in lines})
    least = min(LEAST_IN_A_ROOM, -(-count // max(len(rooms), 1)))
    chosen = [
        mutant
        for room in rooms
        for mutant in [mutant for mutant in lines if mutant.room == room][:least]
    ]
    rest = [mutant for mutant in lines if mutant not in chosen]
    drawn = (chosen + rest)[: max(count, 0)]
    random.Random(seed).shuffle(drawn)  # so that a run that is ended has some of every room
    return drawn


def tests_that_name(file: str) -> list[str]:
    """Return the files of tests that name a module in an import or in their own name."""
    dotted = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, stem = (dotted if dotted.startswith("bsplib") else f"bsplib.{dotted}").rpartition(
        "."
    )
    names = rf"import .*\b{package}\.{stem}\b|from {package}\.{stem} import|"
    names += rf"from {package} import [^\n]*\b{stem}\b"
    found = []
    for name in sources():
        if re.match(r"tests/.*test_\w+\.py$", name):
            is_of_it = f"test_{stem.strip('_')}.py" == Path(name).name
            if is_of_it or re.search(names, (ROOT / name).read_text(encoding="utf-8")):
                found.append(name)
    return found


@dataclass
class Calls:
    """Which tests call a function, as called.py writes it."""

    tests: list[tuple[str, float]]
    """Their names, and how long they take."""
    callers: dict[str, list[int]]
    """Their numbers, by the place where the function begins."""

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return tests that call the function of a mutant: of a few files, the shortest first."""
        numbers = self.callers.get(f"{mutant.file}:{mutant.function}", [])
        files = tests_that_name(mutant.file)
        chosen: list[str] = []
        kept: dict[str, None] = {}
        for number in sorted(numbers, key=lambda number: self.tests[number][1]):
            name = self.tests[number][0]
            kept.setdefault(name.partition("::")[0])
            chosen.append(name)
        wanted = sorted(kept, key=lambda file: file not in files)[:MOST_FILES]
        return [name for name in chosen if name.partition("::")[0] in wanted][:MOST_TESTS]


def pytest(folder: Path, *arguments: str, core: str, limit_s: float) -> tuple[int, str]:
    """Run tests in a copy of the tree; return the status, and the test that failed."""
    variables = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    variables["BSPLIB_CORE"] = core
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return -1, ""
        output.seek(0)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output.read(), re.MULTILINE)
    return status, failed[0] if failed else ""


def watch(folder: Path, core: str) -> Calls:
    """Run the quick tests of a core, and return which functions each of them calls."""
    file = folder / called.FILE
    options = ("-m", "quick", "-p", "tests.called", *WATCHED[core])
    status, _ = pytest(folder, *options, core=core, limit_s=WATCH_LIMIT_S)
    if status not in (0, 1):  # 1: a test failed
        raise click.ClickException(
            f"The quick tests on the {core} core did not end in {WATCH_LIMIT_S} s, or pytest "
            f"failed (status {status}); run mutants while the computer does nothing else."
        )
    told = json.loads(file.read_text(encoding="utf-8"))
    return Calls(told["tests"], told["callers"])


def try_out(mutant: Mutant, folder: Path, calls_on: dict[str, Calls]) -> None:
    """Run the tests on a mutant, and note the outcome in it."""
    path, began = folder / mutant.file, time.monotonic()
    data = path.read_bytes()
    core = "python" if mutant.room == "bsplib/core" else "compiled"
    mutant.outcome = LIVING
    for tests in filter(None, (calls_on[core].tests_of(mutant), tests_that_name(mutant.file))):
        path.write_bytes(data[: mutant.start] + mutant.after.encode() + data[mutant.end :])
        status, failed = pytest(folder, "-x", *tests, core=core, limit_s=LIMIT_S)
        path.write_bytes(data)
        if status not in (0, 5):  # 5: these tests have no case that is run
            mutant.by = failed or ("no end" if status == -1 else "no start")
            again = (folder, failed)
            fails_anyway = failed and pytest(*again, core=core, limit_s=LIMIT_S)[0] == 1
            mutant.outcome = UNSOUND if fails_anyway else KILLED
            break
    mutant.seconds = round(time.monotonic() - began, 1)


def copies(count: int, folder: str) -> SimpleQueue:
    """Copy the tree, with the extension modules of the core."""
    free: SimpleQueue = SimpleQueue()
    built = [str(path.relative_to(ROOT)) for path in (ROOT / "bsplib/core").glob("_built*")]
    built += [
        str(path.relative_to(ROOT))
        for folder in ("bsplib/core", "apps/kernels")
        for path in (ROOT / folder).glob("*.so")
    ]
    for number in range(count):
        own = Path(folder, f"tree{number}")
        own.mkdir()
        names = "\0".join([*sources(), *built])
        command = ["cp", "--parents", "--no-dereference", "--target-directory", str(own)]
        subprocess.run(["xargs", "-0", *command], input=names, text=True, cwd=ROOT, check=True)
        free.put(own)
    return free


def run_all(mutants: list[Mutant], jobs: int, write: Callable[[], None]) -> None:
    """Try all mutants out, several at once, and write what is known after each."""
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ThreadPoolExecutor(jobs) as pool,
    ):
        free = copies(jobs, folder)
        calls_on = {}
        for core in track(WATCHED, "quick tests"):
            calls_on[core] = watch(Path(folder, "tree0"), core)

        def in_a_copy(mutant: Mutant) -> None:
            own = free.get()
            try:
                try_out(mutant, own, calls_on)
            finally:
                free.put(own)

        waiting = [pool.submit(in_a_copy, mutant) for mutant in mutants]
        for done in track(as_completed(waiting), "mutants", total=len(waiting)):
            done.result()
            write()


def counts(mutants: list[Mutant]) -> dict[str, int]:
    """Return how many mutants there are of each outcome."""
    return {outcome: sum(mutant.outcome == outcome for mutant in mutants) for outcome in OUTCOMES}


def commit() -> str:
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty=+"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.strip()


@click.command()
@click.option("--count", default=300, help="Number of mutants.")
@click.option("--seed", default=0, help="Another seed draws other ones.")
@click.option("--only", default="", help="Only files whose path has this text.")
@click.option("--jobs", default=2, help="Mutants that are tried out at once.")
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "out" / "mutants.json")
def main(count: int, seed: int, only: str, jobs: int, out: Path) -> None:
    """Change lines of the product, and see whether the tests notice."""
    mutants = sample(count, seed, only)
    facts = {"commit": commit(), "seed": seed}
    out.parent.mkdir(parents=True, exist_ok=True)

    def write() -> None:
        tried = [mutant for mutant in mutants if mutant.outcome]
        outcome = {**facts, **counts(tried), "mutants": [asdict(mutant) for mutant in tried]}
        out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")

    run_all(mutants, jobs, write)
    for mutant in mutants:
        if mutant.outcome != KILLED:
            place = f"{mutant.file}:{mutant.line}"
            click.echo(f"{mutant.outcome}: {place}: {mutant.before!r} -> {mutant.after!r}")
    click.echo(f"{counts(mutants)}; {out} has all of them")


if __name__ == "__main__":
    main()
