"""Steady-state timing models: the time of a program from a few densities and capacities.

A program is described by its densities, which do not depend on a computer: steps of
computation, bytes that are communicated and bytes that are read from or written to disk. A
computer is described by capacities: W steps a second of each of P processors, u bytes a second
of the network that all share, and B bytes a second of the disk. The time is the sum of work
divided by capacity::

    T(P) = computation / W + disk / B + communication / u

The volume of communication is that of all processors together, since they share the network.

======================== =============================================================
:mod:`bsplib.apps.papers.steady.model` the models of the six algorithms, speedup and efficiency
:mod:`bsplib.apps.papers.steady.model`  the laws of Amdahl and Gustafson, which agree
:mod:`bsplib.apps.papers.steady.grain` bytes to distribute work by pixels, by rows and by parts
:mod:`bsplib.apps.papers.steady.measure` W and u from the times of a few runs
:mod:`bsplib.apps.papers.steady.maps`  speedup or efficiency over any two parameters
:mod:`bsplib.apps.papers.steady.programs` the six algorithms as programs
:mod:`bsplib.apps.papers.steady.measure`  their times beside those of the models
======================== =============================================================

The scan of the paper has lost most equations. Each one here says what it was inferred from.

Source: Shi, Program scalability analysis by steady-state timing models.
"""
