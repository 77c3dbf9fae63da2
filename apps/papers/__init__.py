"""What of the five papers can be computed here, beside what they print: ``bsp papers``.

:mod:`bsplib.apps.papers.entries` has an entry for each figure, table or number that is computed,
``missing.csv`` lists what is not, and ``measured.csv`` what was measured once. They use the
equations of :mod:`bsplib.apps.papers.msteps` (Roda et al.), :mod:`bsplib.apps.papers.speedup` and
:mod:`bsplib.apps.papers.bitonic` (Chittor), :mod:`bsplib.apps.papers.steady` (Shi) and the runs of
:mod:`bsplib.apps.papers.seeds` (Jarvis et al.); :mod:`bsplib.apps.papers.call` is the system CALL
of Gonzalez et al. :mod:`bsplib.apps.papers.show` writes them as text, as HTML, as JSON and
as the page ``docs/maintaining/papers.md``.
"""
