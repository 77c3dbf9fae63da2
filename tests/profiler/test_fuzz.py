"""A few of the damaged files that ``python -m tests.profiler.fuzz`` makes in great number."""

from __future__ import annotations

import shutil

import pytest

from tests.profiler.fuzz.__main__ import try_one
from tests.profiler.fuzz.sound import kinds

KINDS = ("traces", "models", "machines", "baselines", "experiments", "tables", "records", "sweeps")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return the kinds of files by name."""
    return {kind.name: kind for kind in kinds(tmp_path_factory.mktemp("sound"))}


@pytest.mark.lengthy
def test_every_kind_is_tried(sound):
    assert tuple(sound) == KINDS


@pytest.mark.lengthy
@pytest.mark.parametrize("name", KINDS)
def test_a_sound_file_is_shown_by_every_command_for_its_kind(sound, name, tmp_path):
    kind = sound[name]
    for read in kind.reads:
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        copied = shutil.copytree if kind.files[0].is_dir() else shutil.copy
        assert "Error: " not in read(copied(kind.files[0], tmp_path / kind.files[0].name))


@pytest.mark.lengthy
@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_shown_or_refused_in_a_sentence(sound, name, tmp_path):
    ends = {try_one(sound[name], number, tmp_path) for number in range(20)}
    assert ends <= {"shown", "refused"}


@pytest.mark.lengthy
def test_a_name_that_turned_what_a_terminal_shows_no_longer_does(sound, tmp_path):
    assert try_one(sound["machines"], 800_785, tmp_path) == "shown"
