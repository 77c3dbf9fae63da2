"""What works on every system, with a bsplib that is installed: ``python first_steps.py``.

The build server runs this on each system and Python; tests run it on Linux with a wheel for every
system, and where Python lacks what it lacks on other systems.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

RING = """
import bsplib

def main(bsp, n):
    x = bsp.zeros(n)
    right = (bsp.pid + 1) % bsp.nprocs
    bsp.put(right, [bsp.pid] * n, x)
    bsp.send(0, f"process {bsp.pid} put {n} values into process {right}")
    bsp.sync()
    if bsp.pid == 0:
        for source, tag, text in bsp.messages():
            print(text)
    return float(x.sum())

if __name__ == "__main__":
    print(bsplib.run(main, 4, nprocs=4))
"""
TWICE = """
import bsplib

def main(bsp):
    with bsp.partition([1, bsp.nprocs]) as half:
        half.sync()
    return bsp.allreduce(bsp.pid)

if __name__ == "__main__":
    shared = bsplib.shared(range(5))
    options = {"nprocs": 3, "backend": "sim", "check": True, "timeout": 60}
    for _ in range(2):  # the second is added to the trace of the first
        print(bsplib.run(main, profile="twice.bsp", **options))
    print(bsplib.map(int, shared, nprocs=3, backend="sim"))
    with bsplib.Pool(nprocs=3, backend="sim") as pool:
        print(pool.run(main))
"""
SLOW = """
import bsplib

def main(bsp):
    while True:
        pass

if __name__ == "__main__":
    bsplib.run(main, nprocs=2, backend="sim", timeout=5)
"""
SWEPT = """
import bsplib

def main(bsp, block):
    bsp.charge(1e-6 * block)
    for _ in range(0, 64, block):
        bsp.sync()

if __name__ == "__main__":
    bsplib.run(main, 8, nprocs=4, backend="sim", machine="shared-memory")
"""


class Steps:
    """The steps, in a folder with the programs.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("ring", RING), ("twice", TWICE), ("slow", SLOW), ("steps", SWEPT)):
            (folder / f"{name}.py").write_text(text, encoding="utf-8")

    def python(self, *words: str, status: int = 0) -> str:
        """Run Python; return what it prints."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            capture_output=True,
            timeout=300,
            check=False,
        )
        said = (done.stdout + done.stderr).decode(errors="replace")
        assert done.returncode == status, said
        return said

    def bsp(self, *words: str) -> str:
        """Run the command ``bsp``; return what it prints."""
        return self.python("-m", "bsplib", *words)

    def run(self) -> None:
        """A program runs on virtual processors, and is recorded."""
        words = ("run", "--backend", "sim", "-n", "4", "--profile", "ring.bsp", "ring.py")
        said = self.bsp(*words)
        assert "process 3 put 4 values into process 0" in said
        assert "[12.0, 0.0, 4.0, 8.0]" in said
        assert self.python("twice.py").split("\n")[:4] == [
            *["[3, 3, 3]"] * 2,
            "[0, 1, 2, 3, 4]",
            "[3, 3, 3]",
        ]
        assert "slow.py:5" in self.python("slow.py", status=1)

    def look(self) -> None:
        """The run is looked at on the terminal, in a saved page and in a served one."""
        assert "ring.py line" in self.bsp("report", "ring.bsp")
        assert "run 2" in self.bsp("report", "twice.bsp")
        self.bsp("export", "ring.bsp", "--out", "ring.svg")
        self.bsp("view", "--html", "ring.html", "ring.bsp")
        assert "ring.py" in (self.folder / "ring.html").read_text(encoding="utf-8")
        server = subprocess.Popen(
            [sys.executable, "-m", "bsplib", "view", "--no-browser", "ring.bsp"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
        )
        try:
            assert server.stdout is not None
            found = None
            while found is None:
                line = server.stdout.readline().decode()
                assert line, "bsp view has ended"
                found = re.search(r"http://\S+", line)
            with urllib.request.urlopen(found[0], timeout=60) as page:
                assert b"ring.py" in page.read()
        finally:
            server.terminate()
            server.communicate()

    def predict(self) -> None:
        """A run is predicted, and a parameter is tuned."""
        machine = ("--machine", "ideal:g=1e-9,l=1e-6")
        assert "OBSP*" in self.bsp("predict", "ring.bsp", *machine)
        assert "Best: block" in self.bsp("sweep", "--set", "block=1,8,64", "steps.py")

    def refuse(self) -> None:
        """Real processes are refused in a sentence that names virtual ones."""
        if sys.platform == "linux":
            assert "[12.0, 0.0, 4.0, 8.0]" in self.python("ring.py")
            return
        assert self.python("ring.py", status=1).splitlines()[-1] == (
            f"bsplib.errors.StartError: run: the processes of backend 'shm' need Linux, and this "
            f'is {sys.platform}; backend="sim" runs the same program in one process'
        )


def main() -> None:
    """Do all steps."""
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps(Path(folder))
        for step in (steps.run, steps.look, steps.predict, steps.refuse):
            step()
            print(step.__doc__, flush=True)


if __name__ == "__main__":
    main()
