"""A file is written whole or not at all."""

import os

import pytest

from hydra_core.base.whole_file import whole_file


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError), whole_file(target) as fresh:
        fresh.write_text("half \ud800", encoding="utf-8")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_until_the_end_a_reader_sees_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with whole_file(target) as fresh:
        fresh.write_text("new")
        assert target.read_text() == "old"
        assert f".{os.getpid()}." in fresh.name
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_two_writers_of_one_process_do_not_meet(tmp_path):
    target = tmp_path / "a.txt"
    with whole_file(target) as one, whole_file(target) as other:
        one.write_text("one")
        other.write_text("other")
    assert target.read_text() == "one"
