"""The file of a rank holds what was written, also when its rank was killed."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.record import events
from bsplib.record.events import (
    CALLS,
    DONE,
    DONES,
    EVENT,
    EVENTS,
    NUMBER,
    PART,
    PARTS,
    Communicator,
    file_name,
    is_rank_file,
    rank_files,
    read_rank,
)
from tests.record.made_ranks import RankWriter


def some_events(*names, leave=20):
    rows = np.zeros(len(names), EVENT)
    rows["call"] = [NUMBER[name] for name in names]
    rows["enter"], rows["leave"] = 10, leave
    return rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / file_name(3)


def test_what_is_written_is_read_again(path):
    writer = RankWriter(path)
    frames = [["a.py", "<module>", 1, 9, False], ["a.py", "f", 2, 3, False]]
    members = [0, 2]
    writer.line("header", {"rank": 3, "program": "a.py"})
    writer.line("stack", [0, frames])
    writer.line("comm", {"number": 2, "parent": 0, "ordinal": 0, "members": members})
    writer.rows(EVENTS, some_events("Send"))
    writer.rows(PARTS, np.array([(0, 1, 8, 0)], PART))
    writer.rows(DONES, np.array([(1, 7, 2, 5, 8)], DONE))
    writer.rows(EVENTS, some_events("Wait", "Allreduce"))
    writer.line("clock", [5, -3, 1])
    writer.line("end", {"error": ""})
    writer.close()
    read = read_rank(path)
    assert read.header == {"rank": 3, "program": "a.py"}
    assert [CALLS[number] for number in read.events["call"]] == ["Send", "Wait", "Allreduce"]
    assert read.parts.tolist() == [(0, 1, 8, 0)]
    assert read.dones.tolist() == [(1, 7, 2, 5, 8)]
    assert read.stacks == [(("a.py", "<module>", 1, 9, False), ("a.py", "f", 2, 3, False))]
    assert read.comms == [Communicator(2, 0, 0, (0, 2))]
    assert read.clocks == [(5, -3, 1)]
    assert read.end == {"error": ""}
    assert read.open_call is None
    assert read.state == events.ENDED


def test_a_file_that_is_cut_short_gives_what_is_whole(path):
    writer = RankWriter(path)
    writer.line("header", {"rank": 3})
    writer.rows(EVENTS, some_events("Send", "Recv"))
    writer.line("end", {"error": ""})
    writer.close()
    whole = path.read_bytes()
    counts = set()
    for length in range(events.HEAD.size, len(whole) - 1):  # the last byte ends a line
        path.write_bytes(whole[:length])
        read = read_rank(path)
        counts.add(len(read.events))
        assert read.end is None
    assert counts == {0, 1, 2}


def test_another_file_is_no_file_of_a_rank(path, tmp_path):
    path.write_text("something else")
    assert not is_rank_file(path)
    assert rank_files(tmp_path) == []
    with pytest.raises(ValueError, match="is no file of a recorded rank"):
        read_rank(path)
