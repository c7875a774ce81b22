"""The real sets beside the project for the ladder's figures, scored once; never committed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.quality.outcome_lift import POOLS
from benchmarks.quality.real_pools import SETS, SHARED, evalset_of
from hydra_core.choosing.material import gather
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.score_files import messages_of
from hydra_core.evalsets.scoring import score_evalset
from sample_data import mixed_2024

CODE_POOLS = {
    "P": ("claude-opus-4-6", "claude-sonnet-4-6", "gpt-5.4", "Qwen3-Max", "kimi-k2.5"),
    "Q": ("claude-opus-4-6", "gpt-5.4", "qwen3.5-plus"),
}
#: Set -> pools by name; None takes all models.
POOLS_OF = {
    "mixed-2024": POOLS,
    "livecodebench": {"livecodebench": None},
    "code-2026": {f"code {name}": models for name, models in CODE_POOLS.items()},
    "code-2026-faults": {f"faults {name}": models for name, models in CODE_POOLS.items()},
}


def materials(name, workspace, predictor):
    """(pool, material) of every pool of a set; imported and scored where that is not done yet."""
    evalset = _set(name, workspace)
    score_evalset(evalset, predictor)
    bundle = predictor.bundle
    messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
    for pool, models in POOLS_OF[name].items():
        yield pool, gather(evalset, messages, models or evalset.models)


def _set(name, workspace):
    folder = Path(workspace) / name
    if folder.is_dir():
        return load_evalset(folder)
    if name == "mixed-2024":
        every = tuple(sorted({model for pool in POOLS.values() for model in pool}))
        return mixed_2024.read(folder, SHARED / name, every)
    if name == "livecodebench":
        return evalset_of(next(one for one in SETS if one.name == name), SHARED, Path(workspace))
    faults = name.endswith("faults")
    return _code(folder, SHARED / "code-2026" / ("with-grader-faults" if faults else "."))


def _code(folder, source):
    """code-2026; of its main part only the cells that are sound."""
    queries = pd.read_json(source / "queries.jsonl.gz", lines=True)
    outcomes = pd.read_parquet(source / "outcomes.parquet")
    if "cluster" in queries.columns:
        outcomes = outcomes[outcomes["flag"] == ""]
    models = tuple(sorted(outcomes["model"].unique()))

    def matrix(column):
        wide = outcomes.pivot(index="query_id", columns="model", values=column)
        return wide.reindex(index=queries["query_id"], columns=models).to_numpy(np.float64)

    table = queries[["query_id", "text", "language"]].assign(
        group=queries["benchmark"],
        cluster=queries["cluster" if "cluster" in queries.columns else "group"],
    )
    return save_evalset(
        folder,
        name=folder.name,
        queries=table,
        models=models,
        quality=matrix("quality"),
        cost_usd=matrix("cost_usd"),
        extras={k: matrix(k) for k in ("input_tokens", "output_tokens", "latency_s")},
    )
