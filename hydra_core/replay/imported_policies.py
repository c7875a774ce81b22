"""Other routers' decisions kept beside an eval set: which model each query was sent to.

`policies/<name>.parquet` holds query_id and model. A policy is replayed like any other: it becomes
a point beside the frontier, and a side in a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.base.errors import EvalSetError, HydraError, MismatchError, Problem
from hydra_core.base.types import IntArray
from hydra_core.base.whole_file import whole_file
from hydra_core.catalog.identifiers import id_problem
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice
from hydra_core.replay.replay import ReplayData

_REMEDY = "import it again"


@dataclass(frozen=True, slots=True)
class ImportedPolicies:
    """Every policy kept beside an eval set, replayed on a catalog's pool.

    Attributes:
        metrics: Name -> what it came to, for those that can be replayed.
        notes: Why the others cannot, one sentence each.
    """

    metrics: Mapping[str, PolicyMetrics]
    notes: tuple[str, ...] = ()


def policy_path(folder: Path, name: str) -> Path:
    """Where a policy lies in an eval set folder.

    Raises:
        EvalSetError: The name is no plain name.
    """
    problem = id_problem(name) if "/" not in name else (f"{name!r} holds a slash", "leave it out")
    if problem is not None:
        raise EvalSetError("policy", [Problem("name", *problem)])
    return folder / "policies" / f"{name}.parquet"


def policy_names(folder: Path) -> tuple[str, ...]:
    """Names of the policies kept beside an eval set."""
    stems = sorted(path.stem for path in folder.glob("policies/[!.]*.parquet"))
    return tuple(name for name in stems if id_problem(name) is None)


def save_policy(evalset: EvalSet, name: str, models: pd.Series, *, force: bool = False) -> Path:
    """Keep a policy beside an eval set; returns its file.

    Args:
        models: (n,) model of each query, rows as in the eval set.
        force: Replace one of that name.

    Raises:
        EvalSetError: A model that the set does not have, or the name is taken; nothing was changed.
    """
    path = policy_path(evalset.path, name)
    if path.exists() and not force:
        message = f"there is a policy {name!r} already"
        raise EvalSetError(str(evalset.path), [Problem("policy", message, "add --force")])
    unknown = sorted(set(models) - set(evalset.models))
    if unknown or len(models) != evalset.n:
        listed = ", ".join(unknown[:5])
        message = f"sends queries to {listed}" if unknown else f"has {len(models)} rows"
        remedy = f"the set's models: {', '.join(evalset.models)}"
        raise EvalSetError(name, [Problem("model", message, remedy)])
    rows = {"query_id": evalset.queries["query_id"].to_numpy(), "model": models.to_numpy()}
    try:
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as fresh:
            pq.write_table(pa.table(rows), fresh)
    except OSError as error:
        raise EvalSetError(str(path), [Problem("", f"cannot be written: {error}")]) from error
    return path


def load_policy(evalset: EvalSet, name: str) -> tuple[str, ...]:
    """(n,) model of each query, rows as in the eval set.

    Raises:
        EvalSetError: There is none, it is damaged, or of another set.
    """
    path = policy_path(evalset.path, name)
    try:
        table = pq.read_table(path, columns=["query_id", "model"]).to_pydict()
    except (OSError, ValueError, pa.ArrowException) as error:
        problem = Problem("", f"cannot be read: {error}", _REMEDY)
        raise EvalSetError(str(path), [problem]) from error
    same = table["query_id"] == evalset.queries["query_id"].tolist()
    if not same or not set(table["model"]) <= set(evalset.models):
        raise EvalSetError(str(path), [Problem("", "belongs to other queries or models", _REMEDY)])
    return tuple(table["model"])


def policy_choice(data: ReplayData, models: tuple[str, ...]) -> IntArray:
    """(rows of the replay,) pool index that a policy sends each query to.

    Args:
        models: (n,) as `load_policy` gives them.

    Raises:
        MismatchError: It sends queries to a model that the pool does not have.
    """
    chosen = [models[row] for row in data.rows]
    missing = sorted(set(chosen) - set(data.pool.ids))
    if missing:
        raise MismatchError(
            f"this policy sends queries to {', '.join(missing)}, which the catalog's pool does not "
            "have; add the model to the catalog, or choose another policy"
        )
    places = {model: place for place, model in enumerate(data.pool.ids)}
    return np.asarray([places[model] for model in chosen], dtype=np.intp)


def imported_choice(evalset: EvalSet, data: ReplayData, name: str) -> IntArray:
    """(rows of the replay,) pool index that the policy of this name sends each query to.

    Raises:
        EvalSetError: There is none, or it is damaged.
        MismatchError: It sends queries to a model that the pool does not have.
    """
    return policy_choice(data, load_policy(evalset, name))


def imported_policies(
    evalset: EvalSet, data: ReplayData, baseline: str | None = None
) -> ImportedPolicies:
    """Replay every policy that is kept beside an eval set.

    Args:
        baseline: Model that savings are measured against; default the costliest.
    """
    found, notes = {}, []
    for name in policy_names(evalset.path):
        try:
            choice = imported_choice(evalset, data, name)
        except HydraError as error:
            notes.append(f"Imported policy {name} is not shown: {error}")
            continue
        found[name] = evaluate_choice(data, choice, baseline=baseline)
    return ImportedPolicies(found, tuple(notes))
