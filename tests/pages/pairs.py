"""The shipped reconstruction under its catalog against its costliest constant."""

from __future__ import annotations

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.sweep import Bench
from hydra_core.evaluation.study.compare import constant_run
from hydra_core.ui import cache
from hydra_core.views.comparison import Paired, pair, routed_run


def paper_bench() -> Bench:
    entry = next(one for one in cache.evalsets() if one.key == "paper_swebench")
    catalog = next(one.catalog for one in cache.catalogs() if one.key == "paper_five_published")
    assert catalog is not None
    return cache.bench(entry, catalog, catalog.policy.weights)


def paper_pair(tau: float = 0.24) -> tuple[Paired, EvalSet]:
    bench = paper_bench()
    a = constant_run(bench.data, bench.baselines[0])
    return pair(a, routed_run("router", bench, tau), bench), bench.evalset
