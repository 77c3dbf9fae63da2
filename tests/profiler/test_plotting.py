"""Plots are written to their files; a file that cannot be written is an error before the work."""

from __future__ import annotations

import errno
import os

import pytest

from bsplib.profiler import plotting


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["plot.doc", "plot", "plot."])
def test_an_ending_that_names_no_format_is_told_with_those_that_do(tmp_path, name):
    with pytest.raises(
        ValueError, match=r"has no suffix of a known format; use one of .*\.png.*\.svg"
    ):
        plotting.check_target(tmp_path / name)


@pytest.mark.lengthy
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_full_disk_is_told(tmp_path, ending, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    figure = plotting.new_figure(2, 2)
    monkeypatch.setattr(figure, "savefig", full)
    with pytest.raises(ValueError, match=r"cannot be written: No space left on device"):
        plotting.save(figure, tmp_path / f"plot.{ending}")
    assert list(tmp_path.iterdir()) == []
