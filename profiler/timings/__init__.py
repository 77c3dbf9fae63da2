"""Tables of measured times, and formulas that predict more of them.

:func:`read_timings` reads a table from a CSV file or a file of Extra-P, :func:`fit_timings`
fits a formula to it; the result can be printed, plotted, saved and asked for predictions::

    from bsplib.profiler.timings import fit_timings, read_timings

    model = fit_timings(read_timings("data.csv", time="t"))
    print(model)
    print(model.predict(N=2**20, P=64))
    model.plot("fit.png")

:func:`fit_experiment` does this with a data file of experiments, which has the formula.
"""

from bsplib.profiler.timings.experiments import fit_experiment, read_experiments
from bsplib.profiler.timings.files import read_timings, write_timings
from bsplib.profiler.timings.model import Predicted, TimingModel, fit_timings
from bsplib.profiler.timings.table import Timings, TimingsError

__all__ = [
    "Predicted",
    "TimingModel",
    "Timings",
    "TimingsError",
    "fit_experiment",
    "fit_timings",
    "read_experiments",
    "read_timings",
    "write_timings",
]
