"""Damaged files in great number: traces, node models and baselines.

``python -m tests.profiler.fuzz`` changes files of each kind at random, from seeds, and reads and
shows what comes of it. A file that is refused has to be refused by the error that its reader
promises; one that is read has to be shown. Anything else, a crash, an endless loop or memory
without bounds among them, is an accident. ``make soak`` runs it.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import resource
import signal
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import zstandard
from rich.progress import track

import bsplib
from bsplib.errors import BspError, UsageError
from bsplib.machine import load_machine
from bsplib.profiler.callgraph import build
from bsplib.profiler.compare import baseline
from bsplib.profiler.losses import book
from bsplib.profiler.models.nodes.reading import read_model
from bsplib.profiler.models.nodes.session import model_of_traces
from bsplib.recording.packing import HEADER, MAGIC, heads
from bsplib.recording.trace import read_trace
from bsplib.webui import write_html, write_model_html
from bsplib.webui.predicted import ShownModel

MOST_S = 30
MOST_BYTES = 6 << 30
WORDS = (0, -1, 1, 2**31, 2**53, 2**64, -(2**63), 1e308, float("nan"), float("inf"), 0.5)
OTHERS = ("", "a" * 5000, "\x00", "<b>", "../../etc/passwd", None, True, [], {}, [[]], "max", "1/0")


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
    with bsp.split(bsp.pid % 2) as sub:
        sub.get_at([0], [0], sub.array([1.0]))
        sub.sync()


def main(bsp, size):
    """Call the program twice."""
    for _ in range(2):
        program(bsp, size)


def changed_bytes(data: bytes, draw: random.Random) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    for _ in range(draw.choice((1, 1, 2, 8))):
        at, size = draw.randrange(len(data) + 1), draw.choice((1, 1, 8, 64))
        part = draw.randbytes(size) if draw.random() < 0.5 else data[at : at + size] * 2
        data = data[:at] + part + data[at + draw.choice((0, size, len(part))) :]
        if draw.random() < 0.1:
            data = data[: draw.randrange(len(data) + 1)]
    return data


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the place of every value of a document: its container, and its key there."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from leaves(value[key])


def changed_text(text: str, draw: random.Random) -> str:
    """Change values of a JSON document, mostly a little; at times its bytes."""
    if draw.random() < 0.1:
        return changed_bytes(text.encode(), draw).decode("utf-8", "replace")
    document = json.loads(text)
    for _ in range(draw.choice((1, 1, 2, 5))):
        places = list(leaves(document))
        if not places:
            break
        place, key = draw.choice(places)
        old = place[key]
        if type(old) in (int, float) and draw.random() < 0.6:
            place[key] = old + draw.choice((1, -1, 7, -old, old))
        elif draw.random() < 0.2:
            place.pop(key)
        elif draw.random() < 0.3:
            place[key] = copy.deepcopy(draw.choice(places)[0])
        else:
            place[key] = draw.choice(WORDS + OTHERS)
    return json.dumps(document)


def changed_chunks(member: bytes, draw: random.Random) -> bytes:
    """Change what a chunk of rows says, or its header, so that it can still be unpacked."""
    chunks = [(head, bytes(payload)) for head, payload in heads(memoryview(member))]
    if not chunks:
        return member
    chosen = draw.randrange(len(chunks))
    whole = []
    for place, (head, payload) in enumerate(chunks):
        if place == chosen:
            content = bytearray(zstandard.decompress(payload))
            for _ in range(draw.choice((1, 1, 3))):
                at = draw.randrange(len(content))
                content[at] = draw.choice((0, 1, 2, content[at] ^ 1, 255, draw.getrandbits(8)))
            payload = zstandard.compress(content)  # noqa: PLW2901  # the chosen one is replaced
        fields = [MAGIC, head.rows, head.numbering, len(payload), head.base]
        if place == chosen and draw.random() < 0.2:
            fields[draw.randrange(1, 5)] = draw.choice((0, 1, 2, 2**31, head.rows + 1))
        whole.append(HEADER.pack(*fields) + payload)
    return b"".join(whole)


def changed_trace(data: bytes, draw: random.Random) -> bytes:
    """Change the archive, or a member of it behind a sound archive."""
    if draw.random() < 0.15:
        return changed_bytes(data, draw)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(out, "w") as after:
        chosen = draw.choice(before.namelist())
        for name in before.namelist():
            member = before.read(name)
            if name == chosen and name.endswith(".json"):
                member = changed_text(member.decode(), draw).encode()
            elif name == chosen and draw.random() < 0.8:
                member = changed_chunks(member, draw)
            elif name == chosen:
                member = changed_bytes(member, draw)
            after.writestr(name, member)
    return out.getvalue()


def show_trace(path: Path) -> None:
    """Read a trace, and show all that a page and a report of it show."""
    for run in read_trace(path).runs:
        book(build(run)).verdict()
    write_html(read_trace(path), path.with_suffix(".html"), force=True)


def show_model(path: Path) -> None:
    """Read a node model, and write its page."""
    machine = load_machine("cray-t3e-mpi:l=2e-5,speed=5e7")
    write_model_html(ShownModel(read_model(path), machine), path.with_suffix(".html"), force=True)


def show_baseline(path: Path) -> None:
    """Read a baseline, and compare it with itself."""
    try:
        tests = baseline.load(path.read_text("utf-8", "replace"))
    except ValueError as error:
        raise UsageError(str(error)) from None
    for runs in tests.values():
        baseline.changes(runs, runs)


def sound_files(folder: Path) -> dict[str, tuple[Path, Callable[[bytes, random.Random], bytes]]]:
    """Write a sound file of each kind; return it with what changes one."""
    traces = []
    for nprocs in (2, 3, 4):
        for size in (4, 8, 16):
            traces.append(folder / f"{nprocs}-{size}.bsp")
            options = {"nprocs": nprocs, "backend": "sim", "machine": "cray-t3e-mpi:l=2e-5"}
            bsplib.run(main, size, profile=traces[-1], **options)
    model, kept = folder / "model.json", folder / "baseline.json"
    settings = [(path.name, {"n": float(path.stem[2:])}) for path in traces]
    model_of_traces(traces, settings=settings).save(model)
    facts = [baseline.facts_of(run) for run in read_trace(traces[-1]).runs]
    kept.write_text(baseline.dump({"a": facts, "b": []}))

    def as_text(data: bytes, draw: random.Random) -> bytes:
        return changed_text(data.decode(), draw).encode("utf-8", "replace")

    return {
        "traces": (traces[-1], changed_trace),
        "models": (model, as_text),
        "baselines": (kept, as_text),
    }


SHOW = {"traces": show_trace, "models": show_model, "baselines": show_baseline}


def late(*_: object) -> None:
    """End what takes too long."""
    raise TimeoutError(f"it took {MOST_S} s")


@click.command()
@click.option("--count", default=10_000, show_default=True, help="Files of each kind.")
@click.option("--seed", default=0, show_default=True, help="Number of the first file.")
def command(count: int, seed: int) -> None:
    """Read damaged files, and count how they end."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, late)
    accidents = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, (sound, change) in sound_files(folder).items():
            data, ends = sound.read_bytes(), Counter[str]()
            path = folder / f"changed{sound.suffix}"
            for number in track(range(seed, seed + count), kind, auto_refresh=False):
                path.write_bytes(change(data, random.Random(number)))
                signal.alarm(MOST_S)
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        SHOW[kind](path)
                    ends["shown"] += 1
                except BspError:
                    ends["refused"] += 1
                except BaseException as error:  # noqa: BLE001  # that is what is looked for
                    accidents += 1
                    click.echo(f"{kind}, seed {number}: {type(error).__name__}: {error}")
                finally:
                    signal.alarm(0)
            click.echo(f"{kind}: {dict(ends)}, {accidents} accidents so far")
    sys.exit(accidents > 0)


if __name__ == "__main__":
    command()
