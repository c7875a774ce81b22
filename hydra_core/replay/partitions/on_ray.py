"""The parts of a job on Ray Data: actors that keep what they loaded, one part at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import ray
import ray.data

from hydra_core.replay.partitions.parts import Job, Task

#: CPUs that Ray's own reading needs besides the actors; without them a small machine stalls.
_SPARE_CPUS: Final = 2


def run_on_ray(job: Job, todo: Sequence[Task], workers: int) -> Iterator[int]:
    """Do the parts; yields the number of each as it is done.

    Args:
        workers: Actors, one part each at a time. A cluster that is connected already is used as it
            is; otherwise a local one is started and stopped.
    """
    started = not ray.is_initialized()
    if started:
        cpus = max(workers + _SPARE_CPUS, len(os.sched_getaffinity(0)))
        ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        places = ray.data.from_items(
            [{"place": place} for place in range(len(todo))], override_num_blocks=len(todo)
        )
        done = places.map_batches(
            _Worker,
            fn_constructor_args=(job, list(todo)),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(todo))),
        )
        for row in done.iter_rows():
            yield int(row["place"])
    finally:
        if started:
            ray.shutdown()


class _Worker:
    """An actor: it lives through many parts, and with it what the job keeps (a session)."""

    def __init__(self, job: Job, todo: list[Task]) -> None:
        self._job, self._todo = job, todo

    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
        for place in batch["place"].tolist():
            self._job(self._todo[place])
        return dict(batch)
