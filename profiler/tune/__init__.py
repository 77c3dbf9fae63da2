"""Tuning of a parameter of an application by the balance of its h-relations.

An application is run and recorded with each value of the parameter. With greater values
some cost centres cost more, and others become more balanced. This trade-off is found in
the traces, priced on any Machine, and shown.

Source: Jarvis et al. 2002, section 4.3, Figures 7 and 8.
"""

from bsplib.profiler.tune.app import App, find_app
from bsplib.profiler.tune.best import TuneVerdict, judge
from bsplib.profiler.tune.parameter import Parameter, parse_parameter
from bsplib.profiler.tune.sweep import Point, SweepOptions, sweep
from bsplib.profiler.tune.trade_off import Trade, find_trade

__all__ = [
    "App",
    "Parameter",
    "Point",
    "SweepOptions",
    "Trade",
    "TuneVerdict",
    "find_app",
    "find_trade",
    "judge",
    "parse_parameter",
    "sweep",
]
