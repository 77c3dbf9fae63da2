"""Files are written whole or not at all, and which earlier files they may replace."""

from __future__ import annotations

import os
import re
import socket

import pytest

from bsplib.output_file import PAGE, PAGE_MARK, TRACE, obstacle, written_whole


def write(path, text="new", replaces=None, force=True):
    with written_whole(path, replaces, force=force) as temporary:
        temporary.write_text(text)


def test_the_older_file_stays_where_writing_fails(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("older")

    def fail():
        with written_whole(path, force=True) as temporary:
            temporary.write_text("half")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert (path.read_text(), os.listdir(tmp_path)) == ("older", ["file.txt"])


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.txt"
    path.write_text("older")
    path.chmod(0o600)
    write(path)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_a_link_stays_and_the_file_it_points_to_is_replaced(tmp_path):
    target, link = tmp_path / "there" / "file.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    target.write_text("older")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.fixture
def places(tmp_path):
    """What is no regular file, by what it is."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        yield {
            "a folder": tmp_path / "folder",
            "a named pipe": tmp_path / "pipe",
            "a device": tmp_path / "device",
            "a socket": tmp_path / "socket",
        }


def test_nothing_but_a_regular_file_is_replaced(places):
    for kind, path in places.items():
        assert obstacle(path) == f"{path} is {kind}; choose the name of a file"
        with pytest.raises(OSError, match=f"it is {kind}; choose the name of a file"):
            write(path)
        assert path.exists()
    assert not os.path.isfile("/dev/null")


def test_what_stands_in_the_way_is_said_beforehand(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert obstacle(tmp_path / "new.txt") == ""
    assert obstacle(tmp_path / "file", force=True) == ""
    assert obstacle(tmp_path / "no" / "x") == f"there is no folder {tmp_path / 'no'}"
    assert obstacle(tmp_path / "file" / "x") == f"there is no folder {tmp_path / 'file'}"
    assert "Too many levels of symbolic links" in obstacle(tmp_path / "loop")
    assert re.search("cannot be written: .*embedded null", obstacle(tmp_path / "a\0b"))
    assert "cannot be written: File name too long" in obstacle(tmp_path / ("x" * 300))


OWN = {TRACE: b"PK\x03\x04" + bytes(26) + b"trace.json", PAGE: f"<html>{PAGE_MARK}".encode()}


@pytest.mark.parametrize("kind", [None, TRACE, PAGE], ids=str)
def test_a_file_of_the_user_is_not_replaced(tmp_path, kind):
    path = tmp_path / "keep.py"
    path.write_text("print('mine')")
    assert obstacle(path, kind).startswith(f"{path} exists ")
    assert "name another file" in obstacle(path, kind)
    with pytest.raises(FileExistsError, match=r"exists .*name another file, or "):
        write(path, replaces=kind, force=False)
    assert path.read_text() == "print('mine')"
    assert os.listdir(tmp_path) == ["keep.py"]


@pytest.mark.parametrize("kind", OWN, ids=str)
def test_a_trace_replaces_a_trace_and_a_page_a_page_but_not_each_other(tmp_path, kind):
    for other, content in OWN.items():
        path = tmp_path / "file"
        path.write_bytes(content)
        assert (obstacle(path, kind) == "") == (kind == other)


def test_a_file_that_came_while_the_new_one_was_written_stays(tmp_path):
    path = tmp_path / "keep.py"

    def write_late():
        with written_whole(path) as temporary:
            temporary.write_text("new")
            path.write_text("mine")

    with pytest.raises(FileExistsError, match="exists already"):
        write_late()
    assert (path.read_text(), os.listdir(tmp_path)) == ("mine", ["keep.py"])


def test_a_folder_without_permission_is_said_beforehand(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # the system lets root write anywhere
    assert obstacle(tmp_path / "x") == (
        f"no files can be created in the folder {tmp_path}: permission denied"
    )


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    write(tmp_path / ("x" * 251 + ".txt"))
    assert len(os.listdir(tmp_path)) == 1
