"""The file of a benchmark keeps all figures in few lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from benchmarks.document import read, write
from benchmarks.harness import RESULTS
from tests.drawn import examples

CELLS = [{"n": 2**power, "took_s": 1 / 3 * power, "why": None} for power in range(1, 41)]


@pytest.fixture
def kept(tmp_path):
    """Write a document; return what is read back, and its lines."""

    def keep(document):
        path = tmp_path / "folder" / "one.json"
        write(document, path)
        return read(path), path.read_text(encoding="utf-8").splitlines()

    return keep


def test_a_list_of_cells_is_a_table_with_its_columns_once(kept):
    found, lines = kept({"cells": CELLS})
    assert [cell["n"] for cell in found["cells"]] == [cell["n"] for cell in CELLS]
    assert found["cells"][0] == {"n": 2, "took_s": 0.333333, "why": None}
    assert sum("took_s" in line for line in lines) == 1


def test_lists_with_lists_of_objects_inside_are_no_tables(kept):
    document = {"sections": [{"cases": [{"name": f"{n}"}] * n} for n in range(4)]}
    assert kept(document)[0] == document


def test_numbers_have_six_digits_and_whole_ones_all_of_theirs(kept):
    found, _ = kept({"part": 0.123456789, "size_bytes": 25276502016.0, "none": float("inf")})
    assert found == {"part": 0.123457, "size_bytes": 25276502016, "none": float("inf")}


def test_no_line_is_longer_than_the_width_unless_it_is_one_text(kept):
    _, lines = kept({"cells": CELLS, "text": "x" * 500, "more": list(range(500))})
    assert [len(line) > 160 for line in lines].count(True) == 1


WORDS = st.text("ab", max_size=3)
DOCUMENTS = st.dictionaries(
    WORDS,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=200),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(WORDS, inner, max_size=5),
        max_leaves=40,
    ),
    max_size=5,
)


@pytest.mark.slow
@examples(50, suppress_health_check=[HealthCheck.too_slow])  # the computer may be busy
@given(DOCUMENTS)
def test_what_is_written_is_read_back(tmp_path_factory, document):
    path = tmp_path_factory.getbasetemp() / "document.json"
    write(document, path)
    assert read(path) == document


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_every_result_has_its_provenance_and_no_raw_samples(path, tmp_path):
    document = read(path)
    assert {"date", "commit", "versions", "machine", "load_average"} <= set(document)
    assert "samples_s" not in path.read_text(encoding="utf-8")
    write(document, tmp_path / path.name)
    assert (tmp_path / path.name).read_text("utf-8") == path.read_text("utf-8")


def test_the_files_are_json_for_any_reader():
    for path in RESULTS.glob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))
