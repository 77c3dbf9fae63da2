"""Names, titles and units are the same in Python and on the page: one table is written for both."""

from bsplib.profiler.account import PARTS
from bsplib.profiler.critical import MEASURES
from bsplib.webui import terms


def test_the_table_of_the_page_is_the_one_of_the_profiler():
    written = terms.FILE.read_text(encoding="utf-8")
    assert written == terms.script(), "write it anew: python -m bsplib.webui.terms"


def test_narrow_names_and_measures_are_those_of_the_profiler():
    assert set(terms.NARROW) <= set(PARTS)
    assert tuple(terms.MEASURE_NAMES) == MEASURES
