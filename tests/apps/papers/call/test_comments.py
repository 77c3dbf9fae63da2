"""Comments that make blocks experiments: ``#cll f f[0]*N`` .. ``#cll end f``."""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
import traceback

import pytest

import bsplib
from bsplib.apps.papers.call import session
from bsplib.apps.papers.call.comments import instrument, run_script
from bsplib.errors import UsageError
from bsplib.profiler.predict.experiments import passages
from bsplib.recording.trace import read_trace


def program(body, before=""):
    lines = textwrap.dedent(before).strip("\n") + "\n" if before else ""
    return f"{lines}def main(bsp, n):\n" + textwrap.indent(
        textwrap.dedent(body).strip("\n"), "    "
    )


@pytest.fixture
def run(tmp_path):
    """Run a program with its blocks; return its results, and what the blocks measured."""

    def run_it(source, n=3, nprocs=2):
        space, path = {"__name__": "program"}, tmp_path / "blocks.bsp"
        exec(compile(instrument(source, "prog.py"), "prog.py", "exec"), space)
        results = bsplib.run(space["main"], n, nprocs=nprocs, backend="sim", profile=path)
        return results, passages(read_trace(path).runs[-1])

    return run_it


def test_statements_between_two_comments_are_a_block(run):
    results, rows = run(
        program("""
        #cll f f[0] + f[1]*n
        total = sum(range(n))
        total += 1
        #cll end f
        return total
        """)
    )
    assert results == [4, 4]
    assert [(row.name, row.formula, row.values) for row in rows] == [
        ("f", "f[0] + f[1]*n", {"n": 3, "P": 2})
    ]


def test_blocks_nest_and_stand_in_loops_and_branches(run):
    _, rows = run(
        program("""
        #  cll outer o[0]
        for i in range(n):
            if i % 2:
                #cll inner a[0]*i
                bsp.sync()
                # cll end inner
            else:
                #cll inner a[0]*i
                bsp.sync()
                #cll end inner
        #cll end outer
        """)
    )
    assert [row.name for row in rows] == ["inner"] * 3 + ["outer"]
    assert [row.values["i"] for row in rows[:3]] == [0, 1, 2]


def test_a_block_ends_where_a_function_returns_inside_of_it(run):
    results, rows = run(
        program("""
        while True:
            #cll f f[0]*n
            if n:
                return "left"
            #cll end f
        """)
    )
    assert results == ["left"] * 2
    assert len(rows) == 1


@pytest.mark.parametrize("end", ["+ \\", "+\\"], ids=["after a blank", "at once"])
def test_a_comment_may_go_on_in_the_next_line_and_ask_for_a_sync(run, end):
    _, rows = run(
        program(f"""
        #cll sync f f[0] {end}
        #  f[1]*n
        x = 1
        #cll end f
        """)
    )
    assert rows[0].formula == "f[0] + f[1]*n"


def test_a_block_belongs_to_the_sub_group_that_is_open(run):
    _, rows = run(
        program("""
        with bsp.partition([1, bsp.nprocs]):
            #cll f f[0]*P
            pass
            #cll end f
        """),
        nprocs=3,
    )
    assert sorted(row.values["P"] for row in rows) == [1, 2]


def test_lines_of_a_traceback_stay_what_they_are():
    source = program("""
        #cll f f[0]*n
        x = (1 +
             n)
        #cll end f
        assert x == 0, "line 6"
        """)
    space = {}
    exec(compile(instrument(source, "prog.py"), "prog.py", "exec"), space)
    with pytest.raises(AssertionError) as caught:
        bsplib.run(space["main"], 3, nprocs=1, backend="sim")
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.lineno for frame in frames if frame.filename == "prog.py"] == [6]


def test_a_name_in_a_formula_that_the_program_lacks_is_missed_at_the_comment():
    source = program("""
        #cll f f[0]*size
        pass
        #cll end f
        """)
    space = {}
    exec(compile(instrument(source, "prog.py"), "prog.py", "exec"), space)
    with pytest.raises(NameError, match="size") as caught:
        bsplib.run(space["main"], 3, nprocs=1, backend="sim")
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.lineno for frame in frames if frame.filename == "prog.py"] == [2]


def test_a_program_without_such_comments_stays_as_it_is():
    assert instrument("x = '#cll f f[0]'\n# call me\n", "prog.py") is None


REFUSED = {
    "no end": ("#cll f f[0]\nx = 1", "prog.py:2: f does not end in these statements; "),
    "no beginning": ("x = 1\n#cll end f", "prog.py:3: #cll end f ends no block of these "),
    "crossing": (
        "#cll f f[0]\n#cll g g[0]\nx = 1\n#cll end f\n#cll end g",
        "prog.py:5: #cll end f stands inside of g, which began in line 3 and has to end first",
    ),
    "into a branch": (
        "#cll f f[0]\nif n:\n    x = 1\n    #cll end f",
        "prog.py:5: #cll end f ends no block of these statements; both comments",
    ),
    "out of a branch": (
        "if n:\n    #cll f f[0]\n    x = 1\n#cll end f",
        "prog.py:3: f does not end in these statements; write #cll end f: both",
    ),
    "no name": ("#cll f[0] + f[1]\nx = 1", "is no name with a formula; write #cll f f[0] + f[1]*N"),
    "no formula": ("#cll f\nx = 1", "is no name with a formula"),
    "nothing": ("#cll\nx = 1", "prog.py:2: '#cll' is no name with a formula"),
    "end of nothing": ("#cll end\nx = 1", "prog.py:2: 'end' names no block; write #cll end f"),
    "a wrong formula": ("#cll f f[0] +* 2\nx = 1", "prog.py:2: experiment f: "),
    "beside a statement": ("x = 1  #cll f f[0]", "prog.py:2: a #cll comment has to stand alone"),
    "inside an expression": ("x = (\n#cll f f[0]\n1)", "prog.py:3: a #cll comment has to stand al"),
    "a wrong indentation": (
        "  #cll f f[0]\nx = 1\n  #cll end f",
        "this #cll comment stands where no statement can; indent it",
    ),
    "before an else": (
        "if n:\n    x = 1\n#cll f f[0]\nelse:\n    x = 2\n#cll end f",
        "prog.py:4: this #cll comment stands where no statement can",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_block_is_refused_in_one_sentence_with_file_and_line(case):
    body, sentence = REFUSED[case]
    source = "def main(bsp, n):\n" + textwrap.indent(body, "    ") + "\n    return x\n"
    with pytest.raises(UsageError, match=re.escape(sentence)) as caught:
        instrument(source, "prog.py")
    assert re.match(r"prog\.py:\d+: ", str(caught.value))


def test_a_block_outside_of_a_run_is_refused(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text("n = 3\n#cll f f[0]*n\nn = 4\n#cll end f\n")
    with pytest.raises(UsageError, match=r"alone.py:2: experiment f: no run of bsplib is under"):
        run_script(str(script))


SCRIPT = """
import bsplib
import cll_helper

def main(bsp, n):
    #cll outer o[0]*n
    value = cll_helper.work(n)
    #cll end outer
    return value

if __name__ == "__main__":
    print(bsplib.run(main, 5, nprocs=2, start_method={method!r}))
"""
HELPER = """
def work(n):
    #cll inner i[0]*n
    total = sum(range(n))
    #cll end inner
    return total
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_comments_count_in_modules_that_a_script_imports(tmp_path, monkeypatch, method, capfd):
    (tmp_path / "cll_helper.py").write_text(HELPER)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(method=method))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cll_helper", raising=False)
    rows = session.run(str(script))
    sys.modules.pop("cll_helper", None)
    assert not capfd.readouterr().out
    assert [row.name for row in rows] == ["inner", "outer"]
    # Nothing that has blocks is left for those who import the module without comments.
    assert importlib.import_module("cll_helper").work(5) == 10
    del sys.modules["cll_helper"]
