"""Record programs of others that use mpi4py, and write a page about each.

``python docs/mpi4py_programs.py FOLDER [NAME...]`` installs the programs into FOLDER, runs those
that are named, or all, with and without ``bsp record`` on both MPIs, and writes what was measured
to ``docs/gallery/mpi4py/measured.json`` and the pages beside it. ``--pages`` writes the pages anew
without any run. The programs need a network and minutes, so this is no part of a test or of
``make docs``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "gallery" / "mpi4py"
MEASURED = PAGES / "measured.json"
sys.path.insert(0, str(ROOT))  # whose packages are not all installed

from tests.mpi_installations import ALL, Mpi  # noqa: E402  # the path is set above

COUNTS = (2, 4)
"""Numbers of processes."""
PAIRS = 2
"""How often a program runs without and with the recorder, in turn."""
LIMIT_S = 300.0
_SHOWN_RUN = "MPICH, p = 2"
"""The run whose report a page shows: with a core for each process, and the faster start."""
_WITHOUT_JOIN = (
    "import sys; from bsplib.record import command; command.JOIN = 'nosuch'; "
    "command.main(sys.argv[1:])"
)
"""The recorder without the trace, which is made once, and is not a cost of the run."""


@dataclass(frozen=True)
class Program:
    """A program of others."""

    title: str
    about: str
    packages: tuple[str, ...]
    """Distributions and versions that are installed for it, without those that bsplib needs."""
    words: tuple[str, ...]
    """After ``python``; a file is one of this folder, or of the demos of mpi4py."""
    teaches: str
    stdin: str = ""


_FIRST = Program("", "", (), ("-m", "mpi4py.bench", "helloworld", "-q"), "")
PROGRAMS = {
    "cpi_rma": Program(
        "Pi through windows (a demo of mpi4py)",
        "Each process computes a part of an integral and adds it to a window of process 0. The "
        "number of intervals is read from the standard input.",
        (),
        ("compute-pi/cpi-rma.py",),
        "A fence is a collective, so each `Fence` ends a superstep, and `Get` and `Accumulate` are "
        "its traffic. A run as short as this one consists of its start: the first window is made "
        "where the processes meet for the first time.",
        stdin="400000\n400000\n0\n",
    ),
    "futures_primes": Program(
        "Tests for primes in a pool (a demo of mpi4py.futures)",
        "`python -m mpi4py.futures` makes process 0 the master of a pool, and the others its "
        "workers.",
        (),
        ("-m", "mpi4py.futures", "futures/run_primes.py"),
        "On process 0 a thread of the pool calls MPI, and is the one that is recorded. It sleeps "
        "between its looks for results, so the report calls process 0 blocked. Only the others "
        "compute: with two processes half of the computer is idle, which is the load balance of "
        "50%.",
    ),
    "emcee_pool": Program(
        "An ensemble sampler (emcee with the pool of schwimmbad)",
        "Process 0 moves the walkers of a Markov chain; the others evaluate its density.",
        ("emcee==3.1.6", "schwimmbad==0.4.2"),
        ("emcee_pool.py",),
        "A program without collectives: its supersteps are those of its messages, and process 0 "
        "asks for results in a loop of `Iprobe`, which is waiting. A `with` around the pool would "
        "tell the workers twice to stop; since they receive one of these messages, MPICH ends "
        "process 0 in Finalize, sometimes with an error. What was recorded is complete all "
        "the same.",
    ),
    "pylops_cgls": Program(
        "Conjugate gradients on a distributed operator (PyLops-MPI)",
        "A derivative of a distributed model is inverted by least squares.",
        ("pylops-mpi==0.8.0", "pylops==2.8.0"),
        ("pylops_cgls.py",),
        "The call graph leads from the line of the program into the library: which of its "
        "operators communicates, and how small its messages are.",
    ),
    "pylbm_cavity": Program(
        "A driven cavity by the lattice Boltzmann method (pylbm)",
        "The lid of a cavity moves the fluid in it; the grid is divided among the processes.",
        (
            *("pylbm==0.11.0", "sympy==1.14.0", "mpmath==1.3.0", "cerberus==1.3.8"),
            "h5py==3.16.0",
            *("colorlog==6.12.0", "colorama==0.4.6", "numpy-stl==4.1.1", "python-utils==4.2.0"),
        ),
        ("pylbm_cavity.py",),
        "Halos are exchanged by `Isend`, `Irecv` and `Waitall` in each step. On a computer "
        "that others use, too, the report says how long the run would take with a core for each "
        "process.",
    ),
    "fft_navier_stokes": Program(
        "Decaying vortices with distributed transforms (mpi4py-fft)",
        "A pseudo-spectral method on slabs; each transform transposes its data by `Alltoallw`. "
        "The package is compiled when it is installed, which needs FFTW and its headers.",
        ("mpi4py-fft==2.0.6",),
        ("fft_navier_stokes.py",),
        "The bytes of `Alltoallw` are those of its derived types. The lines of the report are "
        "those of the library from which MPI is called, with the line that called it.",
    ),
}


def _installed(folder: Path, names: list[str]) -> tuple[Path, Path]:
    """Install what programs need, unless it is there; return the folders of packages and demos."""
    site, mpi4py = folder / "site", f"mpi4py-{version('mpi4py')}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    for requirement in sorted({each for name in names for each in PROGRAMS[name].packages}):
        name, wanted = requirement.split("==")
        stem = name.replace("-", "_")
        if not any(site.glob(f"{stem}-{wanted}.dist-info")):
            command = [*pip, "install", "-q", "--no-deps", "--target", str(site), requirement]
            subprocess.run(command, check=True)
    if not (folder / mpi4py).exists():
        requirement = mpi4py.replace("-", "==")
        options = ["--no-deps", "--no-binary", "mpi4py", "-d", str(folder)]
        subprocess.run([*pip, "download", "-q", *options, requirement], check=True)
        archive = folder / f"{mpi4py}.tar.gz"
        subprocess.run(["tar", "xf", str(archive), "-C", str(folder)], check=True)
    return site, folder / mpi4py / "demo"


@dataclass(frozen=True)
class Run:
    """What a run has cost and printed."""

    output: str
    errors: str
    status: int
    seconds: float
    cpu_s: float
    """CPU time of all processes."""
    memory_kb: int
    """Memory of the largest process."""


class Runner:
    """Runs programs on one MPI with a number of processes.

    Args:
        mpi: the MPI.
        nprocs: number of processes.
        site: folder of packages.
        demos: folder of the demos of mpi4py.
    """

    def __init__(self, mpi: Mpi, nprocs: int, site: Path, demos: Path) -> None:
        self._mpi, self._nprocs, self._demos = mpi, nprocs, demos
        self._environment = mpi.whole_environment(nprocs)
        self._environment["PYTHONPATH"] += f"{os.pathsep}{site}"

    def words(self, program: Program) -> list[str]:
        """Return what follows ``python``."""
        found = []
        for word in program.words:
            place = next((each for each in (PAGES, self._demos) if (each / word).is_file()), None)
            found.append(str(place / word) if place else word)
        return found

    def run(self, program: Program, out: Path | None) -> Run:
        """Run a program; out: the trace to record."""
        recorder = [] if out is None else ["-c", _WITHOUT_JOIN, str(out)]
        command = self._mpi.start(self._nprocs, sys.executable, *recorder, *self.words(program))
        with (
            tempfile.TemporaryFile("w+") as stdin,
            tempfile.TemporaryFile("w+") as stdout,
            tempfile.TemporaryFile("w+") as stderr,
        ):
            stdin.write(program.stdin)
            stdin.seek(0)
            begin = time.monotonic()
            process = subprocess.Popen(
                ["timeout", str(LIMIT_S), *command],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - begin
            stdout.seek(0)
            stderr.seek(0)
            return Run(
                stdout.read(),
                stderr.read(),
                process.returncode,
                seconds,
                usage.ru_utime + usage.ru_stime,
                usage.ru_maxrss,
            )


def _measured(runner: Runner, program: Program) -> dict[str, Any]:
    """Run a program in turn without and with the recorder."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name, "out.bsp")
        pairs = [(runner.run(program, None), runner.run(program, out)) for _ in range(PAIRS)]
        report, calls = _report(out)
    bare, recorded = ([pair[at] for pair in pairs] for at in range(2))
    for each in (*bare, *recorded):
        if each.status:
            raise RuntimeError(f"{program.title}: status {each.status}: {each.errors}")
    outputs = {each.output for each in bare}
    return {
        "same_bare": len(outputs) == 1,
        "same_recorded": {each.output for each in recorded} <= outputs,
        "output": bare[0].output,
        "seconds": statistics.median(each.seconds for each in bare),
        "bare_cpu_s": [round(each.cpu_s, 3) for each in bare],
        "recorded_cpu_s": [round(each.cpu_s, 3) for each in recorded],
        "bare_memory_kb": [each.memory_kb for each in bare],
        "recorded_memory_kb": [each.memory_kb for each in recorded],
        "calls": calls,
        "report": report,
    }


def _report(out: Path) -> tuple[list[str], int]:
    """Make the trace; return the first lines of its report, and the number of recorded calls."""
    from bsplib.record.events import rank_files, read_rank  # noqa: PLC0415  # the path is set above

    folder = Path(f"{out}.ranks")
    calls = sum(len(read_rank(path).events) for path in rank_files(folder))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "110"}
    for words in (["bsplib.record.join", str(folder), str(out)], ["bsplib", "report", str(out)]):
        done = subprocess.run(
            [sys.executable, "-m", *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    head = done.stdout.partition("\n\n")[0]
    return [re.sub(r"/\S*/", "", line) for line in head.splitlines()], calls


def _measure(folder: Path, names: list[str]) -> None:
    """Run programs, and add what was measured to the file."""
    site, demos = _installed(folder.resolve(), names)
    found = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    for mpi in ALL:  # the recorder is compiled when it is used for the first time
        with tempfile.TemporaryDirectory() as temporary:
            Runner(mpi, 1, site, demos).run(_FIRST, Path(temporary, "out.bsp"))
    for name in names:
        rows = {}
        for mpi in ALL:
            for nprocs in COUNTS:
                row = _measured(Runner(mpi, nprocs, site, demos), PROGRAMS[name])
                rows[f"{mpi.name}, p = {nprocs}"] = row
                print(name, mpi.name, nprocs, {**row, "report": row["report"][:2]}, flush=True)
        machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
        found[name] = {"machine": machine, "mpi4py": version("mpi4py"), "runs": rows}
        MEASURED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


# -- pages ----------------------------------------------------------------------------------------


def _page(name: str, measured: dict[str, Any]) -> str:
    """Return the page of a program."""
    program, runs = PROGRAMS[name], measured["runs"]
    shown = _SHOWN_RUN if _SHOWN_RUN in runs else min(runs)
    nprocs = shown.rpartition(" ")[2]
    words = " ".join(program.words)
    packages = ", ".join(each.replace("==", " ") for each in program.packages[:2])
    versions = f"{packages}, with " if packages else "a demo in the sources of "
    own = program.words[-1] if (PAGES / program.words[-1]).is_file() else ""
    source = f"[{own}]({own}) is a small program that calls it." if own else ""
    return "\n".join(
        [
            f"# {program.title}\n",
            f"{program.about} {source}".rstrip() + "\n",
            f"The program: {versions}mpi4py {measured['mpi4py']}. Nothing of it was changed.\n",
            f"```sh\nmpiexec -n {nprocs} bsp record {name}.bsp {words}\n"
            f"bsp report {name}.bsp\n```\n",
            f"The report begins, as measured with {shown}:\n",
            "```text",
            *runs[shown]["report"],
            "```\n",
            f"**What a reader learns.** {program.teaches}\n",
            "## What the recorder cost\n",
            f"CPU time of all processes with their starts, median of {PAIRS} runs each in turn, "
            "and the memory of the largest process "
            f"({measured['machine']}, used by others, too):\n",
            "| MPI, processes | results | calls of MPI | CPU time | recorded | memory | recorded |",
            "|---|---|---|---|---|---|---|",
            *map(_row, runs, runs.values()),
            "",
        ]
    )


def _row(title: str, run: dict[str, Any]) -> str:
    """Return a row of the table."""
    same = "the same to the bit" if run["same_recorded"] else "others"
    if not run["same_bare"]:
        same = "not the same in two runs without the recorder"
    cpu, recorded_cpu, memory, recorded_memory = (
        statistics.median(run[f"{way}_{what}"])
        for what in ("cpu_s", "memory_kb")
        for way in ("bare", "recorded")
    )
    return (
        f"| {title} | {same} | {run['calls']} | {cpu:.2f} s | {recorded_cpu:.2f} s | "
        f"{memory / 1024:.0f} MiB | {recorded_memory / 1024:.0f} MiB |"
    )


def _write_pages() -> None:
    """Write the pages of all programs that have been measured, and the list of them."""
    found = json.loads(MEASURED.read_text(encoding="utf-8"))
    links = []
    for name, program in PROGRAMS.items():
        if name in found:
            (PAGES / f"{name}.md").write_text(_page(name, found[name]), encoding="utf-8")
            links.append(f"- [{program.title}]({name}.md): {program.about}")
    text = (
        "# Programs of others\n\nPrograms and libraries that use mpi4py and know nothing of "
        "bsplib, recorded by [`bsp record`](../../howto/record_mpi4py.md). "
        "`docs/mpi4py_programs.py` installs them, measures and writes these pages.\n\n"
        + "\n".join(links)
        + "\n\nThe recorder adds about 6 MiB to the memory of a process, less where the program "
        "itself has loaded\nthe same modules of Python, and up to 0.1 s to its start. So short "
        "runs of small programs show\nmore of it than long ones.\n"
    )
    (PAGES / "index.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Measure, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the programs are installed")
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], help="default: all")
    parser.add_argument("--pages", action="store_true", help="write the pages only")
    arguments = parser.parse_args()
    if not arguments.pages:
        if arguments.folder is None:
            parser.error("name the folder for the programs")
        arguments.folder.mkdir(parents=True, exist_ok=True)
        _measure(arguments.folder, arguments.names or [*PROGRAMS])
    _write_pages()


if __name__ == "__main__":
    main()
