"""The shipped reconstruction under its catalog against its costliest constant."""

from hydra_core.console import cache
from hydra_core.console.compare.view import Paired, pair, routed_run
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import constant_run
from hydra_core.replay.sweep import Sweep


def paper_sweep() -> Sweep:
    entry = next(one for one in cache.evalsets() if one.key == "paper_swebench")
    catalog = next(one.catalog for one in cache.catalogs() if one.key == "paper_five_published")
    assert catalog is not None
    return cache.sweep(entry, catalog, catalog.policy.weights)


def paper_pair(tau: float = 0.24) -> tuple[Paired, EvalSet]:
    sweep = paper_sweep()
    a = constant_run(sweep.data, sweep.baselines[0])
    return pair(a, routed_run("router", sweep, tau), sweep), sweep.evalset
