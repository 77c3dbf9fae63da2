"""Predictions of runs that nobody made: laws of supersteps and h, and one fit of times.

:func:`read_timings` reads a table of anybody's measurements, and :func:`fit_timings` fits a
formula to it; the result can be printed, plotted, saved and asked for predictions::

    from bsplib.profiler.predict import fit_timings, read_timings

    model = fit_timings(read_timings("data.csv", time="t"))
    print(model)
    print(model.predict(N=2**20, P=64))
    model.plot("fit.png")

:func:`fit_experiment` does this with a data file of experiments, which has the formula.
:func:`model_of_traces` learns the laws of a program from its traces, :func:`predict_run` predicts
a run by them, and :func:`scaling` the same run on other numbers of processes.
"""

from bsplib.profiler.predict.document import ModelError, read_model, write_model
from bsplib.profiler.predict.experiments import fit_experiment, read_experiments
from bsplib.profiler.predict.files import read_timings, write_timings
from bsplib.profiler.predict.prediction import RunPrediction, Scaling, predict_run, scaling
from bsplib.profiler.predict.program import ProgramModel, learn
from bsplib.profiler.predict.session import model_of_traces
from bsplib.profiler.predict.table import Timings, TimingsError
from bsplib.profiler.predict.times import Predicted, TimingModel, fit_timings

__all__ = [
    "ModelError",
    "Predicted",
    "ProgramModel",
    "RunPrediction",
    "Scaling",
    "TimingModel",
    "Timings",
    "TimingsError",
    "fit_experiment",
    "fit_timings",
    "learn",
    "model_of_traces",
    "predict_run",
    "read_experiments",
    "read_model",
    "read_timings",
    "scaling",
    "write_model",
    "write_timings",
]
