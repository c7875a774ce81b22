"""The decision log on disk: what is written, what survives, what is known to be lost."""

import os
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from hydra_core.base.digests import text_sha256
from hydra_core.decision_log.reading import read_log
from hydra_core.decision_log.records import DecisionRecord, OutcomeRecord
from hydra_core.decision_log.writer import LogError, LogWriter, open_segments, parquet_segments

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)


def record(number, **changes):
    values = {
        "decision_id": f"d{number}",
        "at": AT,
        "catalog": "c",
        "catalog_digest": "0",
        "revision": "3",
        "policy_digest": "1",
        "rule": "shortfall",
        "knob": 0.24,
        "conversation_id": None,
        "turn": 1,
        "dimensions": ("a", "b"),
        "requirements": (0.1, 0.2),
        "candidates": ("x", "y"),
        "shortfalls": (0.0, 0.1),
        "predicted_success": None,
        "predicted_cost_usd": None,
        "chosen": "x",
        "cause": "cheapest_eligible",
        "served": "x",
        "attempts": (),
        "propensity": 1.0,
        "propensities": (1.0, 0.0),
        "keep_probability": 0.0,
        "status": "answered",
        "text_sha256": text_sha256("hello"),
    }
    return DecisionRecord(**(values | changes))


def test_a_window_and_an_arm_of_a_log_are_read(tmp_path):
    log = LogWriter(tmp_path)
    for number in range(4):
        at = AT + timedelta(hours=number)
        log.add(record(number, at=at, arm="canary" if number % 2 else "main"))
    log.close()

    def ids(**window):
        return read_log(tmp_path, **window).decisions["decision_id"].tolist()

    hours = [AT + timedelta(hours=number) for number in range(4)]
    assert ids(since=hours[1], until=hours[3]) == ["d1", "d2"]
    assert ids(arm="canary") == ["d1", "d3"]
    assert ids(until=hours[2], arm="main") == ["d0"]
    with pytest.raises(LogError, match="none of 1 decisions is of the arm 'canary', all are of m"):
        ids(until=hours[1], arm="canary")


def test_a_log_without_a_canary_has_no_arms(tmp_path):
    log = LogWriter(tmp_path / "log")
    log.add(record(1))
    log.close()
    with pytest.raises(LogError, match="there was no canary; leave out --arm"):
        read_log(tmp_path / "log", arm="main")


def test_what_was_written_is_read_back_whole(tmp_path):
    log = LogWriter(tmp_path)
    log.add(record(1, text="hällo\n", cost_usd=0.5, input_tokens=7))
    log.add(OutcomeRecord("d1", AT, 0.75, "user", "fine"))
    log.flush()
    assert len(read_log(tmp_path).decisions) == 1  # while it is still being written
    log.close()
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"]
    row = read_log(tmp_path).decisions.iloc[0]
    assert (row["text"], row["cost_usd"], row["input_tokens"]) == ("hällo\n", 0.5, 7)
    assert (row["quality"], row["source"], row["comment"]) == (0.75, "user", "fine")
    assert list(row["candidates"]) == ["x", "y"]
    assert row["at"] == AT


def test_a_log_from_before_distances_is_read_without_any(tmp_path):
    log = LogWriter(tmp_path)
    log.add(record(1, distance=1.25))
    log.close()
    (path,) = tmp_path.iterdir()
    assert read_log(tmp_path).decisions["distance"].tolist() == [1.25]
    pq.write_table(pq.read_table(path).drop_columns(["distance"]), path)
    assert read_log(tmp_path).decisions["distance"].isna().all()


def test_the_newest_outcome_counts_and_one_without_a_decision_is_counted(tmp_path):
    log = LogWriter(tmp_path)
    log.add(record(1))
    log.add(OutcomeRecord("d1", AT, 0.0))
    log.add(OutcomeRecord("d1", AT.replace(hour=13), 1.0))
    log.add(OutcomeRecord("d9", AT, 1.0))
    log.close()
    found = read_log(tmp_path)
    assert list(found.decisions["quality"]) == [1.0]
    assert found.orphans == 1


def test_a_segment_of_a_certain_size_becomes_parquet_and_nothing_is_lost(tmp_path):
    log = LogWriter(tmp_path, rotate_bytes=5_000)
    for number in range(100):
        log.add(record(number))
        if number % 10 == 9:
            log.flush()
    assert len(parquet_segments(tmp_path)) > 3
    log.close()
    assert sorted(read_log(tmp_path).decisions["decision_id"]) == sorted(
        f"d{number}" for number in range(100)
    )


def test_a_killed_process_loses_only_what_was_not_flushed_and_the_next_one_says_so(tmp_path):
    program = f"""
        import os, signal, sys
        from pathlib import Path
        sys.path.insert(0, {os.getcwd()!r})
        from tests.decision_log.test_log import record
        from hydra_core.decision_log.writer import LogWriter
        log = LogWriter(Path({str(tmp_path)!r}), flush_s=3600)
        for number in range(10):
            log.add(record(number))
        log.flush()
        for number in range(10, 14):
            log.add(record(number))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL
    log = LogWriter(tmp_path)
    log.close()
    found = read_log(tmp_path)
    assert len(found.decisions) == 10
    assert found.lost == 4


def test_a_line_torn_by_a_crash_is_dropped_and_the_rest_is_kept(tmp_path):
    log = LogWriter(tmp_path)
    log.add(record(1))
    log.flush()
    path = open_segments(tmp_path)[0]
    torn = tmp_path / "decisions-20200101T000000.000000Z-1.jsonl"
    torn.write_bytes(path.read_bytes() + b'{"kind":"decision","decision_id":"half')
    assert len(read_log(tmp_path).decisions) == 2
    log.close()
    LogWriter(tmp_path).close()
    assert len(read_log(tmp_path).decisions) == 2
    assert not open_segments(tmp_path)


def test_another_process_that_is_alive_keeps_its_segment(tmp_path):
    first = LogWriter(tmp_path)
    first.add(record(1))
    second = LogWriter(tmp_path)
    second.close()
    first.add(record(2))
    first.close()
    assert len(read_log(tmp_path).decisions) == 2


def test_while_the_disk_refuses_records_wait_and_it_is_said(tmp_path, monkeypatch):
    log = LogWriter(tmp_path, flush_s=3600)
    log.add(record(1))

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(LogError, match="No space left"):
            log.flush()
        assert "No space left" in log.problem
    log.add(record(2))
    log.close()
    assert log.problem == ""
    assert len(read_log(tmp_path).decisions) == 2


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LogError, match="no such log folder"):
        read_log(tmp_path / "nothing")
