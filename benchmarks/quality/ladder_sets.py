"""The real sets beside the project for the ladder's figures, scored once; never committed."""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.quality.outcome_lift import POOLS
from benchmarks.quality.real_pools import SETS, SHARED, evalset_of
from hydra_core.choosing.material import gather
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.scores import messages_of, score_evalset
from sample_data import mixed_2024

CODE_POOLS = {
    "P": ("claude-opus-4-6", "claude-sonnet-4-6", "gpt-5.4", "Qwen3-Max", "kimi-k2.5"),
    "Q": ("claude-opus-4-6", "gpt-5.4", "qwen3.5-plus"),
}
AGENT_POOLS = {
    "X": ("DeepSeek-V4-Pro", "MiniMax-M2.7", "GPT-5.4", "claude-opus-4-6", "claude-opus-4-8"),
    "Y": ("Kimi-K2.6", "GPT-5.4", "claude-opus-4-8"),
}
#: Sets that are read as `real_sets` reads them; the pools of mixed-2024 are read together here.
_IMPORTED = tuple(one.name for one in SETS if not one.name.startswith("mixed"))
#: Set -> pools by name; None takes all models.
POOLS_OF = {
    "mixed-2024": POOLS,
    **{name: {name: None} for name in _IMPORTED},
    "agents-2026": {f"agents {name}": models for name, models in AGENT_POOLS.items()},
    "code-2026": {f"code {name}": models for name, models in CODE_POOLS.items()},
    "code-2026-faults": {f"faults {name}": models for name, models in CODE_POOLS.items()},
}


_EXTRAS = ("input_tokens", "output_tokens", "latency_s")


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
    if name in _IMPORTED:
        return evalset_of(next(one for one in SETS if one.name == name), SHARED, Path(workspace))
    if name == "agents-2026":
        return _code(folder, SHARED / name)
    faults = name.endswith("faults")
    return _code(folder, SHARED / "code-2026" / ("with-grader-faults" if faults else "."))


def _code(folder, source):
    """agents-2026 or code-2026; of the latter's main part only the cells that are sound."""
    queries = pd.read_json(source / "queries.jsonl.gz", lines=True)
    outcomes = pd.read_parquet(source / "outcomes.parquet")
    if "flag" in outcomes.columns:
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
        extras={k: matrix(k) for k in _EXTRAS if k in outcomes.columns},
    )
