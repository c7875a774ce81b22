"""Several processes that train one model together, one core each.

Gradients are added up, so the outcome is that of one process apart from rounding and dropout. They
wait for each other once an update, so they are faster than one process of two threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import spawn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from hydra_core.lab.training.texts.augment import Family

T = TypeVar("T")


class Team:
    """One process among `size`; alone by default."""

    def __init__(self, rank: int = 0, size: int = 1, meeting: Path | None = None) -> None:
        """Args: own number, number of processes, a new file through which they find each other."""
        self.rank, self.size = rank, size
        if size > 1:
            assert meeting is not None
            dist.init_process_group(
                "gloo", init_method=meeting.resolve().as_uri(), rank=rank, world_size=size
            )

    def share(self, make: Callable[[], T]) -> T:
        """What `make` gives on the first process, on every process."""
        if self.size == 1:
            return make()
        box: list[T | None] = [make() if self.rank == 0 else None]
        dist.broadcast_object_list(box)
        made = box[0]
        assert made is not None
        return made

    def part(self, families: Sequence[Family]) -> list[Family]:
        """This process's families: parts of about equal work."""
        order = sorted(families, key=lambda f: -_work(f))
        parts: list[list[Family]] = [[] for _ in range(self.size)]
        loads = [0] * self.size
        for family in order:
            least = loads.index(min(loads))
            parts[least].append(family)
            loads[least] += _work(family)
        return parts[self.rank]

    def add_gradients(self, model: nn.Module) -> None:
        """Replace every gradient by the sum over the processes."""
        if self.size == 1:
            return
        trained = [p for p in model.parameters() if p.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in trained if p.grad is not None]
        flat = parameters_to_vector(gradients)
        dist.all_reduce(flat)
        vector_to_parameters(flat, gradients)

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            dist.barrier()


def _work(family: Family) -> int:
    """Bytes of the wordings; what is longer than about 200 tokens is cut before it costs more."""
    return sum(min(len(row.text.encode()), 900) + 40 for row in family)


def together(size: int, job: Callable[[Team], None]) -> None:
    """Run `job`, which must be picklable, in `size` processes of one thread each."""
    with TemporaryDirectory() as folder:
        spawn(_member, (size, Path(folder) / "meeting", job), nprocs=size)


def _member(rank: int, size: int, meeting: Path, job: Callable[[Team], None]) -> None:
    torch.set_num_threads(1)
    job(Team(rank, size, meeting))
