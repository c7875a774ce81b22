"""A log folder in trouble: a full disk, other processes, files that are none of its own."""

import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from hydra_core.decision_log import writer
from hydra_core.decision_log.reading import read_log
from hydra_core.decision_log.writer import LogError, LogWriter, Segment, open_segments, recover
from tests.decision_log.test_log import AT, record

NAME = "decisions-20261125T120000.000000Z-1.jsonl"


def full(*given, **named):
    raise OSError(28, "No space left on device")


def descriptors():
    return psutil.Process().num_fds()


def test_a_full_disk_at_rotation_leaks_no_descriptor_and_is_a_problem(tmp_path, monkeypatch):
    log = LogWriter(tmp_path, flush_s=3600, rotate_bytes=1)
    before = descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(writer.mmap, "mmap", full)
        for number in range(20):
            log.add(record(number))
            with pytest.raises(LogError, match="No space left"):
                log.flush()
            assert "No space left" in log.problem
    assert descriptors() == before
    assert len(open_segments(tmp_path)) == 1  # no empty ones are left behind
    log.flush()
    assert log.problem == ""
    log.close()
    assert len(read_log(tmp_path).decisions) == 20


def test_a_segment_that_cannot_be_finished_is_a_problem_until_it_is(tmp_path, monkeypatch):
    log = LogWriter(tmp_path, flush_s=3600, rotate_bytes=1)
    log.add(record(1))
    with monkeypatch.context() as patch:
        patch.setattr(writer.pq, "write_table", full)
        for _ in range(2):
            with pytest.raises(LogError, match="No space left"):
                log.flush()
            assert "No space left" in log.problem
    log.add(record(2))
    log.flush()
    assert log.problem == ""
    assert len(read_log(tmp_path).decisions) == 2
    log.close()
    assert not open_segments(tmp_path)


def test_a_disk_that_refuses_is_tried_less_and_less_often(tmp_path, monkeypatch):
    tries = []

    def refuse(handle):
        tries.append(time.monotonic())
        full()

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        log = LogWriter(tmp_path, flush_s=0.01)
        log.add(record(1))
        while len(tries) < 6:
            time.sleep(0.01)
    assert tries[5] - tries[4] > 4 * (tries[1] - tries[0])
    log.close()
    assert len(read_log(tmp_path).decisions) == 1


def test_a_segment_that_was_taken_between_opening_and_lock_is_made_again(tmp_path, monkeypatch):
    """Another process that recovers the folder sees a file that nobody holds yet."""
    taken, flock = [], fcntl.flock

    def slowly(file, how):
        if not taken:
            taken.append(True)
            assert recover(tmp_path, AT) == []
            assert not open_segments(tmp_path)
        return flock(file, how)

    monkeypatch.setattr(writer.fcntl, "flock", slowly)
    segment = Segment(tmp_path / NAME)
    segment.append(b'{"kind":"gap","lost":3}\n')
    assert taken
    assert read_log(tmp_path).lost == 3
    segment.close()


def test_a_segment_that_another_process_removed_is_passed_over(tmp_path, monkeypatch):
    gone = tmp_path / NAME
    monkeypatch.setattr(writer, "open_segments", lambda folder: [gone])
    assert recover(tmp_path, AT) == []


def test_a_segment_that_is_finished_while_the_log_is_read_is_read_once(tmp_path, monkeypatch):
    log = LogWriter(tmp_path, flush_s=3600)
    log.add(record(1))
    log.flush()
    (path,) = open_segments(tmp_path)
    log.close()
    monkeypatch.setattr("hydra_core.decision_log.reading.parquet_segments", lambda folder: [])
    monkeypatch.setattr("hydra_core.decision_log.reading.open_segments", lambda folder: [path])
    assert len(read_log(tmp_path).decisions) == 1


def test_a_pipe_in_the_folder_is_passed_over(tmp_path):
    for name in (NAME, "decisions-x.parquet"):
        os.mkfifo(tmp_path / name)
    LogWriter(tmp_path).close()
    assert len(read_log(tmp_path).decisions) == 0


def test_a_segment_is_never_readable_by_others_while_it_becomes_parquet(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(writer.pq, "write_table", lambda table, path, **more: seen.append(
        path.stat().st_mode & 0o777) or path.write_bytes(b"x"))  # fmt: skip
    log = LogWriter(tmp_path)
    log.add(record(1, text="private"))
    log.close()
    assert seen == [0o600]


def test_files_of_the_log_are_for_their_owner_alone(tmp_path):
    log = LogWriter(tmp_path)
    log.add(record(1, text="private"))
    log.flush()
    modes = [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()]
    log.close()
    modes += [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()]
    assert set(modes) == {0o600}


WORK = """
import sys
from pathlib import Path
from tests.decision_log.test_log import record
from hydra_core.decision_log.writer import LogWriter
folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(rounds):
    log = LogWriter(folder, flush_s=3600, rotate_bytes=1500)
    for k in range(3):
        log.add(record(f"{name}-{number}-{k}"))
        log.flush()
        print(f"{name}-{number}-{k}", flush=True)
    log.close()
"""


def work_and_kill(folder, workers, rounds, rng):
    """Acknowledged ids of processes that share a folder and are killed now and then."""
    acknowledged, lock = [], threading.Lock()

    def one(name):
        command = [sys.executable, "-c", WORK, str(folder), name, str(rounds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stop_at = rng.randrange(1, 3 * rounds)
        for count, line in enumerate(process.stdout, 1):
            with lock:
                acknowledged.append(line.strip())
            if count == stop_at:
                process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()

    threads = [threading.Thread(target=one, args=(f"w{n}",)) for n in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged


@pytest.mark.slow
def test_processes_that_share_a_folder_and_are_killed_lose_nothing_acknowledged(tmp_path):
    rng = random.Random(42)
    acknowledged = []
    for first in (0, 4, 8):
        acknowledged += work_and_kill(tmp_path, range(first, first + 4), 20, rng)
    LogWriter(tmp_path).close()
    kept = {one[1:] for one in read_log(tmp_path).decisions["decision_id"]}
    assert len(acknowledged) > 60
    assert set(acknowledged) <= kept
    assert not open_segments(tmp_path)
