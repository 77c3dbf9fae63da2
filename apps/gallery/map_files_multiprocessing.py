"""One function for each file of a folder, by the pool of ``multiprocessing``."""

import multiprocessing
import sys
from collections import Counter
from pathlib import Path


def commonest(path: Path) -> tuple[str, list[tuple[str, int]]]:
    """Return the name of a file, and its three most frequent words."""
    words = path.read_text(encoding="utf-8", errors="replace").split()
    return path.name, Counter(words).most_common(3)


def main(folder: str) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return what is found in each text of a folder, in the order of their names."""
    with multiprocessing.Pool() as pool:
        return pool.map(commonest, sorted(Path(folder).glob("*.txt")), chunksize=1)


if __name__ == "__main__":
    for name, found in main(sys.argv[1]):
        print(name, found)
