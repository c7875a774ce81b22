"""Who does the parts: processes of this machine, or Ray. Both give the same files."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from enum import StrEnum

from hydra_core.base.errors import ExtraError
from hydra_core.base.types import Progress
from hydra_core.replay.partitions.parts import Job, Task, forget_torn


class Engine(StrEnum):
    """What runs a job."""

    LOCAL = "local"
    RAY = "ray"


def run(
    job: Job,
    all_tasks: Sequence[Task],
    engine: Engine,
    workers: int,
    progress: Progress | None = None,
) -> int:
    """Do the parts that have no result yet; how many that were.

    Args:
        progress: Called with (done, all) after each part; what it raises stops the job.

    Raises:
        EvalSetError: A part is not valid.
        ExtraError: Ray is asked for and not installed.
    """
    todo = [task for task in all_tasks if not task.target.exists()]
    done = len(all_tasks) - len(todo)
    if progress is not None:
        progress(done, len(all_tasks))
    if not todo:
        return 0
    forget_torn(todo)
    finished = _local(job, todo, workers) if engine is Engine.LOCAL else _ray(job, todo, workers)
    for _ in finished:
        done += 1
        if progress is not None:
            progress(done, len(all_tasks))
    return len(todo)


def _local(job: Job, todo: Sequence[Task], workers: int) -> Iterator[object]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(job, task) for task in todo]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ray(job: Job, todo: Sequence[Task], workers: int) -> Iterator[object]:
    try:
        from hydra_core.replay.partitions.on_ray import run_on_ray
    except ImportError as error:
        raise ExtraError("--engine ray", "ray") from error
    return run_on_ray(job, todo, workers)
