"""The command line of the queries: what it makes, shows and refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bsplib.apps.sql.cli import cli
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import PLANS
from bsplib.apps.sql.queries import INPUTS, SQL
from bsplib.apps.sql.reference import difference, reference
from bsplib.recording.trace import read_trace
from tests.processes import run_python

ROOT = Path(__file__).parents[3]


def invoke(*line):
    return CliRunner(env={"COLUMNS": "100"}).invoke(cli, [str(word) for word in line])


def refused(*line):
    result = invoke(*line)
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("relations")
    result = invoke("generate", made, "--size", 900, "--items", 60, "--nulls", 0.05)
    assert result.exit_code == 0, result.output
    return made


def test_relations_are_made_of_the_size_that_is_said(folder):
    rows = {path.stem: pq.read_metadata(path).num_rows for path in folder.iterdir()}
    assert rows == {"ITEM": 60, "QNT": 7, "TRAN": 900}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_queries_are_evaluated_over_files_of_either_kind(tmp_path, form):
    made = invoke("generate", tmp_path, "--size", 300, "--format", form, "--seed", 4)
    assert f"TRAN.{form}: 300 rows" in made.output
    result = invoke("run", tmp_path, "--nprocs", 3, "--backend", "sim")
    assert result.exit_code == 0, result.output
    assert "3 processes made the rows that DuckDB makes in one" in result.output


@pytest.mark.parametrize("stage", PLANS)
def test_every_stage_may_be_named(folder, stage):
    result = invoke("run", folder, "--nprocs", 4, "--backend", "sim", "--stage", stage)
    assert result.exit_code == 0, result.output
    for name in SQL:
        assert name in result.output
    assert "virtual time" in result.output


@pytest.mark.lengthy
def test_what_the_queries_made_is_written(folder, tmp_path):
    result = invoke("run", folder, "--nprocs", 2, "--out", tmp_path / "new" / "temp")
    assert result.exit_code == 0, result.output
    expected = reference({name: folder / f"{name}.parquet" for name in INPUTS})
    for name, table in expected.items():
        got = pq.read_table(tmp_path / "new" / "temp" / f"{name}.parquet")
        assert difference(got, table) is None


def test_the_run_is_recorded(tmp_path):
    path = tmp_path / "trace.bsp"
    line = ("--size", 100, "--nprocs", 4, "--backend", "sim", "--profile", path)
    assert invoke("run", *line).exit_code == 0
    (run,) = read_trace(path).runs
    assert run.nprocs == 4


def test_processes_without_rows_are_told(tmp_path):
    result = invoke("run", "--size", 40, "--nprocs", 4, "--backend", "sim", "--block", 16)
    assert "TRAN has 40 rows: none on 1 of 4 processes" in result.output
    assert "ITEM has 2 rows: none on 3 of 4 processes" in result.output


def test_the_schema_names_every_column_and_query():
    output = invoke("schema").output
    for name, columns in INPUTS.items():
        for column in columns:
            assert f"{name}.{column}" in output
    assert "SUM(units) AS units FROM TRAN GROUP BY item" in output


@pytest.mark.lengthy
def test_the_package_is_a_program():
    done = run_python("-m", "bsplib.apps.sql", "--help", cwd=ROOT, check=True)
    for name in ("generate", "run", "schema", "story"):
        assert f"  {name} " in done.stdout


# -- what is wrong -------------------------------------------------------------------------------


def test_a_folder_without_relations_says_how_to_make_them(tmp_path):
    output = refused("run", tmp_path)
    assert "holds neither ITEM.csv nor ITEM.parquet" in output
    assert f"python -m bsplib.apps.sql generate {tmp_path}" in output


def test_options_of_random_relations_do_not_go_with_a_folder(folder):
    assert "--size is for random relations" in refused("run", folder, "--size", 3)


def test_a_column_of_another_kind_is_one_sentence_and_the_files_stay(tmp_path):
    invoke("generate", tmp_path, "--size", 30, "--format", "csv")
    (tmp_path / "TRAN.csv").write_text("item,units\n1,many\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for stage in ("owner", "original"):
        line = ("run", tmp_path, "--nprocs", 2, "--backend", "sim", "--stage", stage)
        assert "'units' is a string; a calculation is of integers or floats" in refused(*line)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_keys_of_two_kinds_are_one_sentence(tmp_path):
    invoke("generate", tmp_path, "--size", 30, "--format", "csv")
    (tmp_path / "ITEM.csv").write_text("item,class,price\none,a,1.5\n", encoding="utf-8")
    for stage in ("owner", "original"):
        output = refused("run", tmp_path, "--nprocs", 2, "--backend", "sim", "--stage", stage)
        assert "on 'item': integer and string cannot be compared" in output


def test_a_missing_column_is_named(tmp_path):
    invoke("generate", tmp_path, "--size", 30, "--format", "csv")
    (tmp_path / "QNT.csv").write_text("class,stock\na,1\n", encoding="utf-8")
    output = refused("run", tmp_path, "--nprocs", 2)
    assert "QNT.csv: there is no column 'floor'; it has class, stock" in output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--stage", "owner", "--oversampling", 3], "stage 'owner' sorts nothing"),
        (["--oversampling", "none"], "'none' is neither a number above 0 nor 'theory'"),
        (["--size", 0], "0 is not in the range x>=1"),
        (["--nulls", 2], "2.0 is not in the range 0<=x<=1"),
        (["--out", "/proc/nowhere"], "/proc/nowhere cannot be made"),
        (["--nprocs", 1000], "it may be 1 to 256 on shm"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(line, message):
    assert message in refused("run", "--size", 50, "--backend", "shm", *line)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("here\n", encoding="utf-8")
    assert "cannot be made" in refused("generate", file / "folder")
    assert file.read_text(encoding="utf-8") == "here\n"


# -- what is made --------------------------------------------------------------------------------


def test_few_items_are_sold_often():
    relation = Generator(20_000, items=500).relation("TRAN")
    counts = np.sort(np.bincount(relation["item"].values))
    assert counts[-5:].sum() > 0.4 * 20_000


def test_another_seed_makes_other_relations():
    one, other = (Generator(500, seed).relation("TRAN")["item"].values for seed in (1, 2))
    assert (one != other).mean() > 0.5


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_as_many_values_are_null_as_is_said(share):
    generator = Generator(4000, items=4000, nulls=share)
    for name, column in (("TRAN", "units"), ("ITEM", "price")):
        known = generator.relation(name)[column].known()
        assert abs((~known).mean() - share) < 0.05
