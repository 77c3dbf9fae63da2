"""``bsp predict`` of tables: files, formulas, Extra-P, results that can be printed."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from bsplib.profiler import plotting
from bsplib.profiler.predict import (
    Timings,
    TimingsError,
    fit_timings,
    read_timings,
    write_timings,
)
from bsplib.profiler.predict import plot as timings_plot
from tests.commands import run_bsp

GRID = [(size, count) for size in (256, 512, 1024, 2048, 4096) for count in (1, 2, 4, 8)]


def time_of(size, count):
    return 1e-5 * count + 2e-9 * size / count * np.log2(size / count)


def table(**more):
    sizes, counts = (np.array(column, float) for column in zip(*GRID, strict=True))
    return Timings.of({"N": sizes, "P": counts}, time_of(sizes, counts), time="t", **more)


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"{size},{count},{float(time_of(size, count))!r}" for size, count in GRID]
    path.write_text("N,P,t\n" + "\n".join(rows) + "\n")
    return path


# -- reading -----------------------------------------------------------------------------------


def test_a_table_is_read_from_csv(csv_file):
    timings = read_timings(csv_file, "t")
    assert list(timings.values) == ["N", "P"]
    assert len(timings) == len(GRID)
    assert timings.times.min() == pytest.approx(min(time_of(*point) for point in GRID))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_may_be_separated_by_commas_semicolons_or_tabs(tmp_path, delimiter):
    path = tmp_path / "data.txt"
    path.write_text("# a remark\nN;time\n\n1;2\n3;4\n".replace(";", delimiter))
    timings = read_timings(path)
    assert timings.values["N"].tolist() == [1, 3]
    assert timings.times.tolist() == [2, 4]


def test_of_several_times_at_a_point_the_least_counts_unless_asked(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("N,time\n1,5\n1,3\n1,10\n2,7\n")
    assert read_timings(path).times.tolist() == [3, 7]
    assert read_timings(path).repeats == 3
    assert read_timings(path, of_repeats="median").times.tolist() == [5, 7]
    assert read_timings(path, of_repeats="mean").times.tolist() == [6, 7]


def test_columns_that_are_no_variables_are_left_out_by_name(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("host,N,time\na,1,2\nb,3,4\n")
    assert list(read_timings(path, by=["N"]).values) == ["N"]
    with pytest.raises(TimingsError, match=r"line 2: host is 'a', which is no number.*with --by"):
        read_timings(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (
            "N,t\n1,2\n",
            r"has no column 'time' with times; name another by --time: N, t",
        ),
        ("N,time\n", "there are no measurements"),
        ("N,time\n1,0\n2,0\n", "no time time is greater than 0, so there is nothing to fit"),
        ("N,time\n1,3\n2,0\n", r"time is 0 at N = 2, .*; leave such rows out"),
        ("N,time\n1,-3\n2,1\n", r"time is -3 at N = 1"),
        ("N,time\n1,x\n", r"line 2: time is 'x', which is no number$"),
        ("N,time\n1,nan\n", r"line 2: time is 'nan', which is no number$"),
        ("N,time\n1,2,3\n", r"line 2: there are 3 cells under 2 names"),
        ("N,N,time\n1,2,3\n", r"two columns have the same name"),
        (f"N,time\n1,{'9' * 200_000}\n", r"is no table of times: field larger than field limit"),
        (f'{{"params": {{"p": 1{"0" * 400}}}, "value": 1}}\n', r"line 1 is no measurement"),
        ('{"params": {"p": 1}}\n', r"line 1 is no measurement .*: 'value' is missing"),
        ('{"params": {"p": 1}, "value": "x"}\n', r"line 1 is no measurement"),
    ],
)
def test_what_is_no_table_is_one_sentence(tmp_path, text, words):
    path = tmp_path / "data"
    path.write_text(text)
    with pytest.raises(TimingsError, match=words) as caught:
        read_timings(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


# -- Extra-P -----------------------------------------------------------------------------------


def test_a_region_has_to_be_chosen_among_several(tmp_path):
    path = tmp_path / "input.jsonl"
    regions = ("sort", "main->merge")
    lines = [{"params": {"p": p}, "callpath": name, "value": p} for name in regions for p in (1, 2)]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(
        TimingsError, match=r"2 regions; choose one of sort, main->merge with --reg"
    ):
        read_timings(path)
    with pytest.raises(TimingsError, match=r"no region 'x'; choose one of sort, main->merge"):
        read_timings(path, region="x")
    assert read_timings(path, region="sort").times.tolist() == [1, 2]


def test_what_is_written_for_extrap_is_read_again(tmp_path):
    path = tmp_path / "out.jsonl"
    write_timings(table(), path)
    again = read_timings(path, "t")
    assert again.time == "t"
    assert again.times.tolist() == table().times.tolist()
    for variable in "NP":
        assert again.values[variable].tolist() == table().values[variable].tolist()


# -- fitting -----------------------------------------------------------------------------------


def test_a_table_is_predicted_beyond_its_points():
    model = fit_timings(table())
    found = model.predict(N=2**16, P=32)
    assert found.times == pytest.approx(time_of(2**16, 32), rel=0.02)
    assert found.low[0] <= found.times[0] <= found.high[0]


def test_the_formula_of_a_user_is_fitted():
    model = fit_timings(table(), "f[0]*P + f[1]*(N/P)*log2(N/P)")
    assert model.fit.coefficients == pytest.approx([1e-5, 2e-9])
    assert not model.is_chosen


def test_a_wrong_formula_is_doubted_and_better_terms_are_named():
    model = fit_timings(table(), "f[0] + f[1]*N/P")
    assert "f[0]*P + f[1]*(N/P)*log2(N/P)" in model.fit.doubt
    assert f"Doubt: {model.fit.doubt}." in str(model)
    assert model.as_json()["doubt"] == model.fit.doubt


def test_a_formula_that_leaves_about_as_small_errors_is_not_doubted():
    """Also where it has more terms than are needed."""
    noise = np.exp(np.random.default_rng(6).normal(0, 0.1, len(GRID)))
    noisy = Timings.of(table().values, table().times * noise)
    model = fit_timings(noisy, "f[0] + f[1]*P + f[2]*N + f[3]*N/P + f[4]*P**2 + f[5]*sqrt(N)")
    assert 0.05 < model.fit.misfit < 0.15
    assert not model.fit.doubt


def test_a_break_is_found_without_a_formula():
    size = 2.0 ** np.arange(8, 22)
    times = 1e-9 * size * np.where(size > 2**15, 3, 1)
    model = fit_timings(Timings.of({"N": size}, times))
    assert model.fit.breaks == ("N > 32768",)
    assert model.predict(N=2**25).times == pytest.approx(3e-9 * 2**25, rel=0.05)


def test_what_was_not_tried_is_said():
    one = Timings.of({"N": [1, 2, 3, 4], "P": [2] * 4, "x": [5, 6, 5, 6]}, [1, 2, 3, 4])
    untried = " ".join(fit_timings(one, "f[0]*N").untried)
    assert "P is 2 in all measurements" in untried
    assert "x varies and is not in the formula" in untried


@pytest.mark.parametrize("factor", [2, 4])
@pytest.mark.parametrize("points", [5, 6, 8])
def test_strong_scaling_that_is_exact_is_predicted_exactly(points, factor):
    p = 2.0 ** np.arange(points)
    model = fit_timings(Timings.of({"P": p}, 0.1 + 10 / p))
    far = factor * p[-1]
    found = model.predict(P=far)
    assert found.times == pytest.approx(0.1 + 10 / far, rel=0.02)
    assert found.low[0] <= 0.1 + 10 / far <= found.high[0]


def strong_scaling():
    """Laws of strong scaling as users have them, in seconds."""
    return {
        "Amdahl": lambda p: 0.2 + 10 / p,
        "with log p": lambda p: 0.1 + 10 / p + 0.05 * np.log2(p),
        "with p": lambda p: 0.1 + 10 / p + 0.05 * p,
    }


def test_strong_scaling_with_noise_is_predicted_within_a_tenth_in_the_mean():
    errors, held = [], []
    for law, seed in itertools.product(strong_scaling().values(), range(8)):
        random = np.random.default_rng(seed)
        p = 2.0 ** np.arange(5 + seed % 4)
        times = law(p) * np.exp(random.normal(0, 0.03, len(p)))
        far = p[-1] * np.array([2.0, 4.0])
        found = fit_timings(Timings.of({"P": p}, times)).predict(P=far)
        errors += np.abs(found.times / law(far) - 1).tolist()
        held += ((found.low <= law(far)) & (law(far) <= found.high)).tolist()
    assert np.mean(errors) <= 0.1
    assert np.mean(held) >= 0.8


@pytest.mark.parametrize(
    ("values", "formula", "words"),
    [
        ({"N": [7]}, None, "1 different point is too few to choose terms"),
        ({"N": [7]}, "f[0] + f[1]*N", "2 parameters need as many measurements, and there are 1"),
        ({"N": [7]}, "f[0]*M", "M has no value; the variables are N"),
        ({"N": [7]}, "f(", "is not a valid expression"),
        ({"N": [7]}, "f[0]*log2(N - 7)", "is not finite at N = 7"),
    ],
)
def test_what_cannot_be_fitted_is_one_sentence(values, formula, words):
    with pytest.raises(TimingsError, match=words):
        fit_timings(Timings.of(values, [1.0]), formula)


@pytest.mark.lengthy
def test_the_number_of_processes_may_have_any_name():
    timings = table()
    renamed = Timings.of({"N": timings.values["N"], "who": timings.values["P"]}, timings.times)
    model = fit_timings(renamed, processes="who")
    assert model.predict(N=2**16, who=32).times == pytest.approx(time_of(2**16, 32), rel=0.02)
    with pytest.raises(TimingsError, match="there is no variable nobody"):
        fit_timings(renamed, processes="nobody")


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("over", "by", "labels"),
    [("N", "P", ["P = 1", "P = 2", "P = 4", "P = 8"]), ("N", None, ["measured"])],
)
def test_a_plot_has_a_curve_for_each_value_of_another_variable(over, by, labels):
    model = fit_timings(table(), "f[0]*P + f[1]*(N/P)*log2(N/P)")
    axes = plotting.new_figure(6, 5).subplots()
    timings_plot._draw(axes, model, over, by)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
    assert len(axes.collections) == len(labels)


# -- on the command line ------------------------------------------------------------------------


@pytest.mark.lengthy
def test_the_command_writes_json_a_plot_and_a_file_for_extrap(csv_file, tmp_path):
    out = {name: tmp_path / f"o.{name}" for name in ("json", "svg", "jsonl")}
    formula = "f[0]*P + f[1]*(N/P)*log2(N/P)"
    done = run_bsp(
        "predict",
        *(csv_file, "--time", "t", "--formula", formula, "--model-out", out["json"]),
        *("--plot", out["svg"], "--export", out["jsonl"], "--at", "N=65536,P=32"),
    )
    assert done.exit_code == 0, done.output
    found = json.loads(out["json"].read_text())
    assert found["formula"] == formula
    assert found["chosen_by"] == "the user"
    assert found["coefficients"]["f[1]"]["value"] == pytest.approx(2e-9)
    assert found["predicted"][0]["times"] == pytest.approx([time_of(65536, 32)])
    assert len(found["times"]) == len(found["measured"]["N"]) == len(GRID)
    assert "<svg" in out["svg"].read_text()
    assert len(out["jsonl"].read_text().splitlines()) == len(GRID)
    again = run_bsp("predict", out["json"], "--at", "N=65536,P=32")
    assert again.output.splitlines() == done.output.splitlines()[: len(again.output.splitlines())]


@pytest.mark.parametrize("damage", ["rows", "}", '"measured": 3, "x": '])
def test_a_damaged_fit_is_refused_in_a_sentence(csv_file, tmp_path, damage):
    kept = tmp_path / "fit.json"
    assert run_bsp("predict", csv_file, "--time", "t", "--model-out", kept).exit_code == 0
    text = kept.read_text()
    kept.write_text(text.replace('"measured":', damage, 1) if damage != "}" else text[:-3])
    done = run_bsp("predict", kept, "--at", "N=65536,P=32")
    assert "fit.json is no fit that can be read" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--time", "x"],
            "has no column 'x' with times; name another by --time: N, P, t",
        ),
        (["--time", "t", "--by", "M"], "has no column 'M'; it has N, P, t"),
        (["--time", "t", "--formula", "f[0]*M"], "M has no value"),
        (
            ["--time", "t", "--formula", "f[0]*N", "--divide", "M"],
            "M has no value; the variables are N, P",
        ),
        (["--time", "t", "--at", "N"], "'N' is no value of a variable: write it as N=2^20"),
        (["--time", "t", "--at", "N=1e300^9"], "is too large a number"),
        (["--time", "t", "--formula", "f[0]*N", "--at", "P=3"], "a prediction needs a value of N"),
        (["--time", "t", "--plot", "x.doc"], "no suffix of a known format"),
    ],
)
def test_errors_of_tables_are_one_sentence(csv_file, arguments, words):
    done = run_bsp("predict", csv_file, *arguments)
    assert done.exit_code != 0
    assert words in done.output
    assert done.output.count("Error: ") == 1
    assert "Traceback" not in done.output


def test_of_sums_that_are_about_as_good_the_mean_is_taken():
    # Chittor's Table 6, N = 4096, to 64 processes: on 128 and 256 it took 233,409 and 220,699.
    values = {"P": 2.0 ** np.arange(7)}
    times = [11815946, 5262359, 2743669, 1464269, 811479, 478239, 310279]
    found = fit_timings(Timings.of(values, times, time="t")).fit
    alike = [each for each in found.rivals if each.weight >= 0.1]
    assert len(alike) > 1
    assert len(found.formula.parameters) <= 4
    far = {"P": np.array([128.0, 256.0])}
    several = np.array([each.at(far) for each in alike])
    assert (several.min(axis=0) < found.predict(far)).all()
    assert (found.predict(far) < several.max(axis=0)).all()
    assert np.abs(found.predict(far) / [233409, 220699] - 1).mean() < 0.07
