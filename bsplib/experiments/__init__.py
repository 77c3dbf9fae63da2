"""Experiments: blocks of a program with the formula of their time, as CALL has them.

A program marks a block with :meth:`bsplib.Group.experiment` or with comments, and gives the
formula of its time. :mod:`bsplib.experiments.formula` reads formulas,
:mod:`bsplib.experiments.blocks` measures, :mod:`bsplib.experiments.datafile` keeps what was
measured, :mod:`bsplib.experiments.comments` makes blocks of comments.

Source: Gonzalez et al., section 3.
"""
