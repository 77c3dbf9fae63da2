"""The programs that Roda et al. predict by M-steps, with their equations and constants.

================================ ====================================================
:mod:`bsplib.apps.papers.msteps.model`         times of the transform and of the sort, by equations
:mod:`bsplib.apps.papers.msteps.model`     g and L of their Tables 1 and 2, constants of Table 3
:mod:`bsplib.apps.papers.msteps.fft`           the transform as a program: their Figure 7
:mod:`bsplib.apps.papers.msteps.psrs`          the sort as a program: their Figure 8
:mod:`bsplib.apps.papers.msteps.measure`      g and L of this computer, by equations 4, 11 and 12
:mod:`bsplib.apps.papers.msteps.measure`       both here, predicted and measured
================================ ====================================================

Source: Roda et al. 1999, Predicting the execution time of message passing models.
"""
