"""Sound files of every kind that a command reads, and the commands that read them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.apps.papers.call import datafile
from bsplib.profiler.compare import baseline
from bsplib.profiler.compare.baseline import changes
from bsplib.profiler.export.table import FORMATS
from bsplib.profiler.predict import model_of_traces, write_model
from bsplib.profiler.predict.experiments import Passage
from bsplib.record.join import join
from bsplib.recording.packing import StoredTable, chunk_of
from bsplib.recording.records import RECORD, SAMPLE, Doing, Trace
from bsplib.recording.trace import read_trace, write_trace
from bsplib.tools.pytest_plugin import BspTrace, _Baseline
from tests.commands import run_bsp
from tests.profiler.fuzz.damage import (
    changed_bytes,
    changed_json,
    changed_lines,
    changed_trace,
    changed_words,
)
from tests.record.made_ranks import RankMaker, written

MACHINE = "cray-t3e-mpi:l=2e-5,speed=5e7"
AT = ("--at", "size=64,p=8", "--machine", MACHINE)
RUN = "sh -c 'cp {} {trace}' {size} {p}"
"""Makes a run, whose trace is the file."""

Damage = Callable[[bytes, random.Random], bytes]
Reads = Callable[[Path], str]
"""Reads a file, and returns what is then shown."""


@dataclass(frozen=True)
class Kind:
    """Files of one kind."""

    name: str
    files: Sequence[Path]
    """Sound ones; folders of files are damaged in one of them."""
    damage: Damage
    reads: Sequence[Reads]

    def damaged(self, draw: random.Random, folder: Path) -> Path:
        """Write a damaged file, or folder, into a folder."""
        sound = draw.choice(self.files)
        target = folder / sound.name
        if sound.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(sound, target)
        changed = Path(sound.name)
        if sound.is_dir():
            changed /= draw.choice(sorted(file.name for file in sound.iterdir()))
        is_json = sound.is_dir() and changed.suffix == ".json"
        damage = changed_json if is_json else self.damage
        (folder / changed).write_bytes(damage((sound.parent / changed).read_bytes(), draw))
        return target


def bsp(*line: str) -> Reads:
    """Return what calls the command with a line, in which ``{}`` is the file."""

    def read(path: Path) -> str:
        words = [word.replace("{}", str(path)) for word in line]
        done = run_bsp(*words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2), f"the exit status is {done.exit_code}"
        return done.output

    return read


def hold_against_baseline(path: Path) -> str:
    """Read a baseline as the plugin of pytest does, and say what changed in a run."""
    try:
        held = _Baseline(path, update=False)
    except pytest.UsageError as error:
        return str(error)
    trace = BspTrace(path)
    return "\n".join(
        held._message(found, trace)
        for runs in held._known.values()
        if (found := changes(runs, []) + changes([], runs) + changes(runs, runs))
    )


def program(bsp, size):
    """A program with groups, every kind of transfer, and both kinds of sync."""
    x = bsp.zeros(size)
    bsp.put((bsp.pid + 1) % bsp.nprocs, 1.0, x, offset=bsp.pid)
    bsp.charge(1e-3 * (1 + bsp.pid) * size)
    bsp.sync()
    bsp.send((bsp.pid + 1) % bsp.nprocs, b"x" * size)
    bsp.oblsync(1)
    with bsp.partition([1, bsp.nprocs]) as sub:
        sub.allreduce(size)
    with bsp.split(bsp.pid % 2) as sub, bsp.experiment("f", "f[0] + f[1]*N", N=size):
        sub.get_at([0], [0], sub.array([1.0]))
        sub.sync()


def main(bsp, size, copy=None):
    """Call the program; copy the records meanwhile."""
    program(bsp, size)
    if copy is not None and bsp.pid == 0:
        (records,) = copy.parent.glob(".bsp-records-*")
        shutil.copytree(records, copy)


def kinds(folder: Path) -> list[Kind]:
    """Write sound files of every kind into a folder."""
    traces = _traces(folder)
    return [
        _of_traces(traces, _sampled(traces[-1]), _numbered(traces[-1]), *_waiting(folder)),
        _of_models(traces, folder),
        _of_machines(folder, traces),
        _of_baselines(traces[-1], folder),
        _of_experiments(folder),
        _of_tables(folder),
        _of_records(folder),
        _of_sweeps(folder),
    ]


def _traces(folder: Path) -> list[Path]:
    """Record the program with several sizes and numbers of processes."""
    traces = []
    for nprocs in (2, 3):
        for size in (4, 8, 16):
            traces.append(folder / f"{nprocs}-{size}.bsp")
            options = {"nprocs": nprocs, "backend": "sim", "machine": "cray-t3e-mpi:l=2e-5"}
            bsplib.run(main, size, profile=traces[-1], **options)
    return traces


def _sampled(trace: Path) -> Path:
    """Write a trace with samples, of a run that has none."""
    (run,) = read_trace(trace).runs
    samples = np.zeros(100, SAMPLE)
    samples["pid"] = np.arange(100) % run.nprocs
    samples["time"] = np.arange(100) * (int(run.records["end"].max()) // 100)
    samples["stack"] = np.arange(100) % len(run.stacks)
    samples["doing"], samples["spent"] = np.arange(100) % len(Doing), 1_000_000
    path = trace.with_name("sampled.bsp")
    write_trace(path, Trace((replace(run, samples=samples),)))
    return path


def _ranks(folder: Path) -> Path:
    """Write the files of ranks of a program of mpi4py."""
    makers = [RankMaker(rank, 2) for rank in range(2)]
    for maker in makers:
        for step in range(4):
            enter = 100 * step + (80 if maker.rank else 10)
            maker.call("Barrier", enter, 100 * step + 100, line=5)
    return written(folder / "out.ranks", makers)


def _waiting(folder: Path) -> list[Path]:
    """Write a trace in which records say for whom they waited."""
    path = folder / "waits.bsp"
    write_trace(path, join(_ranks(folder)))
    return [path]


def _numbered(trace: Path) -> Path:
    """Write a trace whose records are chunks with a numbering of their own."""
    (run,) = read_trace(trace).runs
    both = {"group": len(run.groups), "stack": len(run.stacks)}
    own = {name: np.arange(count, dtype=np.int32)[::-1] for name, count in both.items()}
    rows = run.records.copy()
    for name, count in both.items():
        rows[name] = count - 1 - rows[name]
    table = StoredTable(RECORD, [chunk_of(rows, 1)], [own])
    path = trace.with_name("numbered.bsp")
    write_trace(path, Trace((replace(run, records=table),)))
    return path


def _of_traces(traces: list[Path], *others: Path) -> Kind:
    sound = [*map(str, traces)]
    exported = [
        bsp("export", "--force", "-o", f"{{}}.out{form.ending}", "{}")
        for form in FORMATS
        if form.name not in ("svg", "png", "pdf")  # dot takes long
    ]
    shown = [
        *(bsp("report", "{}"), bsp("report", "--json", "{}"), bsp("predict", "{}")),
        *(
            bsp("predict", "--machine", "all", "{}"),
            bsp("compare", "{}", "{}"),
            bsp("compare", str(traces[0]), "{}"),
        ),
        bsp("predict", "--model-out", "-", "{}", *sound[:2]),
        bsp("predict", *AT, "--run", RUN, "--budget", "0.02", *sound),
        bsp("predict", "--region", "f", "{}", *sound),
        bsp("view", "--force", "--html", "{}.html", "{}"),
    ]
    return Kind("traces", [traces[-1], *others], changed_trace, shown + exported)


def _of_models(traces: list[Path], folder: Path) -> Kind:
    path = folder / "model.json"
    write_model(model_of_traces(traces), path)
    reads = [
        bsp("predict", "{}", *AT),
        bsp("predict", "--model-out", "{}.out", "--force", "{}"),
        bsp("view", "--fit", "{}", *AT, "--html", "{}.html", "--force"),
    ]
    return Kind("models", [path], changed_json, reads)


def _of_machines(folder: Path, traces: list[Path]) -> Kind:
    paths = [folder / "probed.toml", folder / "library.toml"]
    paths[0].write_text(PROBED)
    paths[1].write_text(PATTERNED)
    sound = [*map(str, traces)]
    reads = [
        bsp("predict", "--machine", "{}", "--speed", "0.5x", sound[-1]),
        bsp("predict", "--machine", "{}", "--speed", "0.5x", "--at", "size=64,p=8", *sound),
        bsp("report", "--machine", "{}", "--speed", "0.5x", sound[-1]),
        bsp("machine", "show", "{}"),
        bsp(*_sweep(folder, "--out", "{}.sweep", "--force", "--machine", "{}")),
    ]
    return Kind("machines", paths, changed_words, reads)


HEAD = """version = 4
name = "four boards"
source = "measured by hand"
p = 4
g_s_per_byte = 5e-10
l_s = 3e-6
host = "node7"
cores = 2
"""
PROBED = f"""{HEAD}[[measured]]
p = 4
empty_s = 1e-6
[measured.patterns.exchange]
bytes = [64, 1048576]
seconds = [1e-6, 1e-3]
"""
PATTERNED = f"""{HEAD}nodes = 8
[patterns.ping-pong]
g_s_per_byte = 9e-10
L_s = 4e-6
[inside]
g_s_per_byte = 5e-11
l_s = 2e-6
[sources]
g = "its data sheet"
"""


def _of_baselines(trace: Path, folder: Path) -> Kind:
    path = folder / "baseline.json"
    facts = [baseline.facts_of(run) for run in read_trace(trace).runs]
    path.write_text(baseline.dump({"a": facts, "b": []}))
    return Kind("baselines", [path], changed_json, [hold_against_baseline])


def _of_experiments(folder: Path) -> Kind:
    path = folder / "sort.call.jsonl"
    rows = [
        Passage(
            *("f", "f[0] + f[1]*N/P", {"N": size, "P": nprocs}),
            {
                "time": [1e-6 * size / nprocs, 5e-7 * size / nprocs],
                "h": [8, 16],
                "cycles": [100, 200],
            },
        )
        for size in (64, 128)
        for nprocs in (1, 2)
    ]
    datafile.append(path, rows)
    reads = [bsp("papers", "call", "--time", each, "{}") for each in ("time", "h", "cycles")]
    return Kind("experiments", [path], changed_lines, reads)


def _of_tables(folder: Path) -> Kind:
    points = [(size, nprocs) for size in (64, 128, 256) for nprocs in (1, 2, 4)]
    texts = {
        "t.csv": "N,P,time\n" + "".join(f"{n},{p},{n / p}\n" for n, p in points),
        "t.jsonl": "".join(
            f'{{"params": {{"N": {n}, "P": {p}}}, "metric": "time", "value": {n / p}}}\n'
            for n, p in points
        ),
        "wide.csv": "N/P,1,2,4\n64,64,32,16\n128,128,64,\n256,256,NA,64\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    fitted = ("predict", "--formula", "f[0] + f[1]*N/P")
    reads = [
        bsp(*fitted, "{}"),
        bsp("predict", "--at", "N=512,P=8", "{}"),
        bsp(*fitted, "--at", "N=512,P=8", "--model-out", "-", "{}"),
        bsp(*fitted, "--by", "N,P", "--export", "{}.exported.jsonl", "--force", "{}"),
        bsp(*fitted, "--of-repeats", "median", "--export", "{}.exported", "--force", "{}"),
    ]
    return Kind("tables", [folder / name for name in texts], changed_words, reads)


def _of_records(folder: Path) -> Kind:
    records, trace = folder / "records", folder / "records.bsp"
    bsplib.run(main, 4, records, nprocs=2, backend="sim", profile=trace)
    reads = [
        bsp("recover", "-o", "{}.recovered", "{}"),
    ]
    return Kind("records", [records, folder / "out.ranks"], changed_bytes, reads)


SCRIPT = """import bsplib

def main(bsp, size):
    bsp.send((bsp.pid + 1) % bsp.nprocs, b"x" * size)
    bsp.charge(size)
    bsp.sync()

def theory(**values):
    return {"bytes": values["size"]}

if __name__ == "__main__":
    bsplib.run(main, 4, nprocs=2)
"""


def _sweep(folder: Path, *options: str) -> tuple[str, ...]:
    script = folder / "swept.py"
    script.write_text(SCRIPT)
    sets = ("--set", "size=4,8", "--repeats", "1", "--backend", "sim")
    return "sweep", *sets, *options, str(script)


def _of_sweeps(folder: Path) -> Kind:
    read = bsp(*_sweep(folder, "--out", "{}"))
    read(folder / "swept")
    return Kind("sweeps", [folder / "swept"], changed_trace, [read])
