"""Experiments: blocks of a program with the formula of their time.

A program marks a block with :meth:`bsplib.Group.experiment`, and gives the formula of its time.
:mod:`bsplib.experiments.formula` reads formulas, and :mod:`bsplib.experiments.blocks` measures.

Source: Gonzalez et al., section 3.
"""
