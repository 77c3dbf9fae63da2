"""A verdict names first what was planted in a program on real processes, with its seconds.

A computer that is busy disturbs a recording by more than what was planted. So a program is recorded
up to three times, and one verdict has to name it. Where other tests run beside them on the same two
cores even that says little, so that they run with all cases only. Seconds may differ by what
processes waited for a core, which shifts one superstep against another.
"""

from __future__ import annotations

import pytest

from .causes import CAUSES, doubts_about, is_absent, recorded

pytestmark = pytest.mark.slow

RECORDINGS = 3


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_sentence_names_the_cause(tmp_path, name):
    doubts = []
    for number in range(RECORDINGS):
        book, planted_s = recorded(CAUSES[name], tmp_path / f"run-{number}.bsp")
        if is_absent(CAUSES[name], planted_s):
            pytest.skip(f"{name}: the temporary folder is in memory, so that no disk is waited for")
        found = doubts_about(CAUSES[name], book, planted_s)
        if not found:
            return
        doubts.append("\n".join([*found, str(book.verdict())]))
    pytest.fail("\n\n".join(doubts))
