from __future__ import annotations

import pytest

from bsplib.directions import Direction
from bsplib.profiler.costs import h_relation
from bsplib.profiler.traffic import matrix_of


@pytest.fixture
def exchange(script):
    """Puts of 8 and 5 bytes to process 2, a get of 3 bytes by 0 from 1; then a put under foo."""
    program = script(3)
    program.step("main", puts=[(0, 2, 8), (1, 2, 5)], gets=[(1, 0, 3)])
    program.step("main foo", puts=[(2, 0, 100)])
    run = program.run()
    run.records["self_bytes"][0] = 7
    return run


def test_rows_send_and_columns_receive(exchange):
    matrix = matrix_of(exchange)
    assert matrix.bytes.tolist() == [[0, 0, 8], [3, 0, 5], [100, 0, 0]]
    assert matrix.messages.tolist() == [[0, 0, 1], [1, 0, 1], [1, 0, 0]]
    assert (matrix.total_bytes, matrix.total_messages) == (116, 4)


def test_sums_of_rows_and_columns_are_h_out_and_h_in(exchange):
    matrix = matrix_of(exchange)
    h_out, h_in = h_relation(exchange)
    assert matrix.h_out[0].tolist() == (h_out[:3] + h_out[3:]).tolist()
    assert matrix.h_in[0].tolist() == (h_in[:3] + h_in[3:]).tolist()


def test_a_get_belongs_to_the_record_that_asked(exchange):
    asked_by_0 = exchange.records["pid"] == 0
    assert matrix_of(exchange, asked_by_0).bytes.tolist() == [
        [0, 0, 8],
        [3, 0, 0],
        [0, 0, 0],
    ]
    assert exchange.traffic["direction"][2] == Direction.IN


@pytest.fixture
def crowd(script):
    """Seven processes that send to their neighbour; all send to process 4."""
    program = script(7)
    program.step("main", puts=[(i, (i + 1) % 7, 1) for i in range(7)])
    program.step("main", puts=[(i, 4, 10) for i in range(7) if i != 4])
    return program.run()


def test_a_block_names_its_process_with_the_most_bytes(crowd):
    matrix = matrix_of(crowd, most=3)
    total, most, pid = matrix.h_in
    assert total.tolist() == [3, 63, 1]
    assert most.tolist() == [1, 61, 1]
    assert pid.tolist() == [0, 4, 6]


def test_traffic_to_a_process_that_broke_off_counts_for_the_asker_alone(script):
    program = script(3)
    program.step(["main", "main", None], puts=[(0, 2, 8), (1, 2, 3)])
    h_out, h_in = h_relation(program.run())
    assert h_out.tolist() == [8, 3]
    assert h_in.tolist() == [0, 0]
