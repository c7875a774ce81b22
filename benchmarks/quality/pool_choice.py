"""Which models are worth routing to at all: a model in the pool can make every tau worse.

The rule sends easy queries to weak models even where a slightly dearer one would do far better.
Leaving such models out is an operator's decision; backward elimination on the exact frontier
proposes one, on queries that are not the ones it is reported on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hydra_core.base.types import Pool
from hydra_core.replay.frontier import frontier
from hydra_core.replay.operating_point import hypervolume
from hydra_core.replay.replay import ReplayData

#: Area that leaving a model out must gain, as a fraction of the whole area.
_WORTH = 1e-4


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """A proposed pool.

    Attributes:
        kept: Model ids, pool order.
        left_out: Model ids in the order they were left out, with the area each step gained.
        area: Area under the frontier with the kept models (see `hypervolume`).
        area_before: The same with all models.
    """

    kept: tuple[str, ...]
    left_out: tuple[tuple[str, float], ...]
    area: float
    area_before: float


def with_models(
    data: ReplayData, models: Sequence[str], rebuild: Callable[[tuple[str, ...]], Pool]
) -> ReplayData:
    """The same queries with some of the models only, and the pool that goes with them."""
    columns = [data.pool.ids.index(model) for model in models]
    return replace(
        data,
        quality=data.quality[:, columns],
        cost_usd=data.cost_usd[:, columns],
        pool=rebuild(tuple(models)),
    )


def choose_pool(data: ReplayData, rebuild: Callable[[tuple[str, ...]], Pool]) -> PoolChoice:
    """Leave out the model whose absence helps most, again and again, while it helps.

    Args:
        data: Replayed set; not the queries the choice is reported on.
        rebuild: The pool (profiles, cost order, weights) for some models, in the order given;
            profiles are relative to the pool, so they move when a model leaves.
    """

    def area(models: Sequence[str]) -> float:
        part = with_models(data, models, rebuild)
        curve = frontier(part.shortfalls(), part.pool.cost, part.quality, part.cost_usd)
        return hypervolume(curve, data)

    kept = list(data.pool.ids)
    best = before = area(kept)
    left_out: list[tuple[str, float]] = []
    while len(kept) > 1:
        tried = [(area([m for m in kept if m != model]), model) for model in kept]
        found, model = max(tried, key=lambda pair: pair[0])
        if found <= best * (1 + _WORTH):
            break
        kept.remove(model)
        left_out.append((model, found - best))
        best = found
    return PoolChoice(tuple(kept), tuple(left_out), best, before)
