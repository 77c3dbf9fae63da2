"""One function for each file of a folder: the words that occur most often in it.

The files are of any length, and so nobody knows which process will be free first: ``bsplib.map``
gives the next file to whoever has none. ``python -m bsplib.apps.gallery.map_files FOLDER`` runs it.

Cost: for files of W seconds in all, W/p and the time of the longest file at most; two collectives
of a few bytes before the loop and a superstep after it: 3 (8 p g + l).
Teaches: a loop whose rounds do not need each other is one call and needs no group; ``profile=``
shows who waited at its end.
"""

import sys
from collections import Counter
from pathlib import Path

import bsplib


def commonest(path: Path) -> tuple[str, list[tuple[str, int]]]:
    """Return the name of a file, and its three most frequent words."""
    words = path.read_text(encoding="utf-8", errors="replace").split()
    return path.name, Counter(words).most_common(3)


def main(folder: str) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return what is found in each text of a folder, in the order of their names."""
    return bsplib.map(commonest, sorted(Path(folder).glob("*.txt")))


if __name__ == "__main__":
    for name, found in main(sys.argv[1]):
        print(name, found)
