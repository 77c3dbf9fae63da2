"""Speedup predicted from a few small experiments, beside the laws of speedup.

Where computation and communication are known up to constants, the time of a program is a linear
function of terms in N and P. A few runs of small problems on few processors, the
*characterisation region*, give its coefficients; the function then predicts larger problems and
systems, the *prediction region*, and the number of processors beyond which speedup falls, the
*roll-off*.

============================= ======================================================
:mod:`bsplib.apps.papers.speedup.terms`     the terms of bitonic merge sort, fitted and evaluated
:mod:`bsplib.apps.papers.speedup.laws`      Amdahl, Gustafson, Sun and Ni, and Seq(P) + Par(N)/P
:mod:`bsplib.apps.papers.speedup.runs`      our bitonic sort on virtual processors
:mod:`bsplib.apps.papers.speedup.overheads` creation of processes and barriers on this computer
============================= ======================================================

Source: Chittor 1995, chapters 4 to 7.
"""
