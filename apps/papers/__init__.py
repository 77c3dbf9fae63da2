"""What of the five papers can be computed here, beside what they print: ``bsp papers``.

:mod:`bsplib.apps.papers.entries` has an entry for each figure, table or number that is computed,
and a list of what is not; :mod:`bsplib.apps.papers.show` writes them as text, as HTML, as JSON and
as the page ``docs/papers.md``.
"""
