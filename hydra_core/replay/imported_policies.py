"""Other routers' decisions kept beside an eval set: which model each query was sent to.

`policies/<name>.parquet` holds query_id and model. A policy is replayed like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from hydra_core.evalsets.importers.reading.bounded import TableFile

_REMEDY = "import it again"
_SHOWN = 5


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
    """Where a policy lies in an eval set folder; EvalSetError where the name is not plain."""
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
        raise EvalSetError.of(str(path), f"cannot be written: {error}") from error
    return path


def load_policy(evalset: EvalSet, name: str) -> tuple[str, ...]:
    """(n,) model of each query of the set; EvalSetError where it is damaged or another set's."""
    path = policy_path(evalset.path, name)
    try:
        table = pq.read_table(path, columns=["query_id", "model"]).to_pydict()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise EvalSetError.of(str(path), f"cannot be read: {error}", _REMEDY) from error
    same = table["query_id"] == evalset.queries["query_id"].tolist()
    if not same or not set(table["model"]) <= set(evalset.models):
        raise EvalSetError.of(str(path), "belongs to other queries or models", _REMEDY)
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
    """Replay every policy that is kept beside an eval set."""
    found, notes = {}, []
    for name in policy_names(evalset.path):
        try:
            choice = imported_choice(evalset, data, name)
        except HydraError as error:
            notes.append(f"Imported policy {name} is not shown: {error}")
            continue
        found[name] = evaluate_choice(data, choice, baseline=baseline)
    return ImportedPolicies(found, tuple(notes))


def read_policy(file: TableFile, evalset: EvalSet) -> pd.Series:
    """(n,) the model that each query of the set was sent to, rows as in the set.

    Args:
        file: CSV, JSONL or Parquet with a row a query; further rows for queries that the set does
            not have are ignored.

    Raises:
        EvalSetError: A query without a row, a query with two, or a model the set does not have.
    """
    # Imported here: Home replays policies, and would wait a tenth of a second for it.
    from hydra_core.evalsets.importers.mapping import suggest_mapping
    from hydra_core.evalsets.importers.reading.bounded import Budget
    from hydra_core.evalsets.importers.reading.cells import LINE
    from hydra_core.evalsets.importers.reading.tables import columns_of, read_columns

    found = columns_of(file)
    fields = suggest_mapping(found).fields
    problems = [
        Problem(name, "the column is missing", f"columns: {', '.join(found[:20])}")
        for name in ("query_id", "model")
        if fields.get(name) not in found
    ]
    EvalSetError.raise_any(file.name, problems)
    wanted = [fields["query_id"], fields["model"]]
    frame = read_columns(file, wanted, Budget())[0]
    rows = pd.DataFrame(
        {"id": frame[wanted[0]], "model": frame[wanted[1]].str.strip(), "line": frame[LINE]}
    )
    rows = rows[rows["id"].isin(evalset.queries["query_id"])]
    _check(rows, evalset, file.name)
    return rows.set_index("id")["model"].reindex(evalset.queries["query_id"]).reset_index(drop=True)


def _check(rows: pd.DataFrame, evalset: EvalSet, source: str) -> None:
    known = ", ".join(evalset.models)
    problems = []
    twice = rows[rows["id"].duplicated()]
    if len(twice):
        message = f"{len(twice)} queries have a second row: {_listed(twice['id'])}"
        problems.append(Problem(f"line {twice['line'].iloc[0]}", message, "keep one row a query"))
    strange = rows[~rows["model"].isin(evalset.models)]
    for model, part in strange.groupby("model"):
        message = f"{model!r} is not a model of eval set {evalset.name} ({len(part)} rows)"
        problems.append(Problem(f"line {part['line'].iloc[0]}", message, f"its models: {known}"))
    absent = evalset.queries["query_id"][~evalset.queries["query_id"].isin(rows["id"])]
    if len(absent):
        message = f"{len(absent)} of {evalset.n} queries have no row: {_listed(absent)}"
        problems.append(Problem("query_id", message, "give every query of the set a model"))
    EvalSetError.raise_any(source, problems)


def _listed(ids: pd.Series) -> str:
    return ", ".join(map(str, ids.iloc[:_SHOWN])) + (", ..." if len(ids) > _SHOWN else "")
