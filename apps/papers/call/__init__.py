"""CALL: comments in a program that name blocks and the formulas of their times.

:mod:`bsplib.apps.papers.call.comments` makes blocks of the comments,
:mod:`bsplib.apps.papers.call.counters` reads counters of the processor,
:mod:`bsplib.apps.papers.call.datafile` keeps what was measured, and
:mod:`bsplib.apps.papers.call.session` is what ``bsp papers call`` does.

Source: Gonzalez et al., section 3.
"""
