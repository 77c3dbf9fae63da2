"""dot draws in every format asked for, and never longer than allowed."""

import shutil
import sysconfig

import pytest

from bsplib.profiler.drawing.graphviz import LayoutError, NoDotError, run_dot

STARTS = {"svg": b"<?xml", "png": b"\x89PNG\r\n"}


@pytest.mark.parametrize("output", STARTS)
def test_without_dot_its_port_draws(output, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_dot("digraph { a -> b }", output).startswith(STARTS[output])


def test_without_any_dot_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(
        NoDotError, match=r"^neither dot of Graphviz nor graphviz-pure is installed"
    ):
        run_dot("digraph { a -> b }")


@pytest.mark.parametrize("bundled", [False, True])
def test_several_graphs_are_drawn_one_after_another(bundled, tmp_path, monkeypatch):
    if bundled:
        monkeypatch.setenv("PATH", str(tmp_path))
    plain = run_dot(["digraph { a -> b }", "digraph { c }"], "plain").decode()
    assert plain.count("stop\n") == 2
    assert plain.index("node b") < plain.index("node c")


def test_a_limit_given_to_one_layout_is_the_one_that_ends_it(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text(f"#!{shutil.which('sh')}\nwhile :; do :; done\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LayoutError, match=r"^dot did not finish within 0\.3 s$"):
        run_dot("digraph {}", limit_s=0.3)


def test_dot_ends_by_itself_where_the_caller_is_killed_before_it(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text(f"#!{shutil.which('sh')}\nulimit -t\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_dot("digraph {}", limit_s=4.2) == b"6\n"  # seconds of CPU time


def test_a_graph_that_dot_cannot_read_is_an_error():
    with pytest.raises(LayoutError, match=r"^dot failed \(status 1\)"):
        run_dot("graph of nothing {")
