"""The accuracy of fitted formulas beyond the measurements, beside goals and Extra-P.

``make bench-prediction`` writes ``benchmarks/results/prediction.json`` with every cell. What
is held out, the seeds and settings are fixed in ``benchmarks/prediction/held_out.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from benchmarks.accuracy import AccuracyGoal, Report, keep
from benchmarks.prediction import cells, doubting, extrap, kernels
from benchmarks.prediction.settings import HELD_OUT
from benchmarks.provenance import Circumstances

_SETS = {"one": "kernels over n, p = 1", "two": "kernels over n, p = 2", "both": "over n and p"}


def measure() -> Report:
    """Make all fits and predictions."""
    sets = HELD_OUT["kernels"]["sets"]
    other = kernels.OF_ANOTHER_COMPUTER
    return {
        "chittor": cells.chittor(),
        "chittor_splits": cells.chittor_splits(),
        "kernels": {part: cells.kernels(part) for part in sets},
        "kernels_epyc": {part: cells.kernels(part, other) for part in sets},
        "doubts": cells.doubts(doubting.experiments()),
    }


def goals(report: Report) -> list[AccuracyGoal]:
    """Return every goal with what was reached."""
    return [
        *_chittor_goals(report["chittor"]),
        *_split_goals(report["chittor_splits"]),
        *_kernel_goals(report["kernels"], ""),
        *_kernel_goals(report["kernels_epyc"], ", on a second computer"),
        *_doubt_goals(report["doubts"]),
    ]


def _chittor_goals(found: Report) -> Iterator[AccuracyGoal]:
    settings = HELD_OUT["chittor"]["goals"]
    for name, goal in (
        ("by the program", settings["by_the_program"]),
        ("program", settings["by_the_user"]),
        ("thesis", settings["by_the_user"]),
        ("revised", settings["by_the_user"]),
        ("program, completed", settings["by_the_user"]),
    ):
        if name not in found:
            continue
        errors = found[name]["errors"]
        title = name if name.startswith("by") else f"by the user, formula {name!r}"
        met = errors["mean"] <= goal["mean"] and errors["greatest"] <= goal["greatest"]
        yield AccuracyGoal(
            f"Chittor's Table 6, {title}: mean / greatest error",
            f"{errors['mean']:.1%} / {errors['greatest']:.1%}",
            f"{goal['mean']:.0%} / {goal['greatest']:.0%}",
            met,
        )
        wanted, reached = settings["roll_off"], found[name]["roll_off"]
        yield AccuracyGoal(
            f"Chittor's Table 6, {title}: roll-off",
            f"{reached['exact']} exact, {reached['within_a_factor_of_2']} within x2",
            f"{wanted['exact']} exact, {wanted['within_a_factor_of_2']} within x2",
            all(reached[key] >= wanted[key] for key in wanted),
        )
    yield from _band("Chittor's Table 6, by the program", found["by the program"])


def _split_goals(found: Report) -> Iterator[AccuracyGoal]:
    """Compare the program with terms that are always the same, over random splits of the table."""
    ours = found["by the program"]
    for name in ("usual", "bitonic"):
        for kind in ("mean", "greatest"):
            pairs = zip(ours["splits"], found[name]["splits"], strict=True)
            better = sum(mine[kind] < other[kind] for mine, other in pairs)
            yield AccuracyGoal(
                f"Chittor's Table 6, random splits, {kind} error",
                f"{ours[kind]:.1%}, less in {better} of {len(ours['splits'])}",
                f"twelve {name} terms: {found[name][kind]:.1%}",
                ours[kind] < found[name][kind],
            )


def _kernel_goals(found: Report, where: str) -> Iterator[AccuracyGoal]:
    for part, report in found.items():
        title = _SETS[part] + where
        theirs = min(report["extrap"].values(), key=lambda each: each["mean"], default=None)
        for kind in ("mean", "median"):
            ours = report["errors"][kind]
            yield AccuracyGoal(
                f"{title}: {kind} error",
                f"{ours:.1%}",
                "Extra-P is missing" if theirs is None else f"Extra-P: {theirs[kind]:.1%}",
                None if theirs is None else ours <= theirs[kind],
            )
        yield from _band(title, report)


def _band(title: str, report: Report) -> Iterator[AccuracyGoal]:
    goal = HELD_OUT["bands"]["goal"]
    yield AccuracyGoal(
        f"{title}: 90% band covers / median half-width",
        f"{report['covered']:.0%} / {report['half_width']:.0%}",
        f"{goal['covered']:.0%} / {goal['half_width']:.0%}",
        report["covered"] >= goal["covered"] and report["half_width"] <= goal["half_width"],
    )


def _doubt_goals(found: Report) -> Iterator[AccuracyGoal]:
    for kind, report in found.items():
        reached, of = report["as_it_should"], report["of"]
        settings = HELD_OUT["doubts"][kind.partition(" ")[0]]
        goal = of - settings["goal"] if kind == "right" else settings["goal"]
        yield AccuracyGoal(
            f"told apart: {kind}", f"{reached} of {of}", f"{goal} of {of}", reached >= goal
        )


@click.command()
@click.option("--measure", "again", is_flag=True, help="Measure the kernels anew, which is long.")
@click.option("--trial", is_flag=True, help="Write the result into out/benchmarks.")
def main(again: bool, trial: bool) -> None:
    """Fit, predict what is held out, and compare with the goals."""
    if again:
        kernels.measure_alone()
    circumstances = Circumstances()
    report = measure()
    head = circumstances.document("prediction")
    head["versions"]["extrap"] = HELD_OUT["extrap"]["version"] if extrap.is_here() else None
    keep(head, report, goals(report), trial=trial)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.bench_prediction")
