"""Reading a decision log back: decisions with their outcomes, and what is known to be lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.decision_log.records import SCHEMA, Kind
from hydra_core.decision_log.segments import LogError, lines_table, open_segments, parquet_segments

__all__ = ["DecisionLog", "read_log"]


@dataclass(frozen=True, slots=True, eq=False)
class DecisionLog:
    """A log in memory.

    Attributes:
        decisions: One row a decision, oldest first, columns of `records.SCHEMA`; `quality`,
            `source` and `comment` are those of its newest outcome, empty where none came.
        orphans: Outcomes of decisions that are not in the log.
        lost: Records that are known to be lost.
    """

    decisions: pd.DataFrame
    orphans: int
    lost: int


def read_log(folder: Path) -> DecisionLog:
    """Every record of a log folder, those still being written included.

    Raises:
        LogError: The folder is not there or a segment is damaged.
    """
    if not folder.is_dir():
        raise LogError(f"{folder}: there is no such log folder")
    done = parquet_segments(folder)
    finished = {path.stem for path in done}
    tables = [_parquet(path) for path in done]
    for path in open_segments(folder):
        if path.stem not in finished:  # else: finished a moment ago and about to be removed
            tables.append(lines_table(path))
    table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
    return _joined(table.to_pandas())


def _parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, schema=SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise LogError(f"{path}: is damaged: {error}") from error


def _joined(rows: pd.DataFrame) -> DecisionLog:
    rows = rows.sort_values("at", kind="stable")
    kind = rows["kind"]
    decisions = rows.loc[kind == Kind.DECISION.value]
    decisions = decisions.drop(columns=["kind", "lost", "quality", "source", "comment"])
    told = ["decision_id", "quality", "source", "comment"]
    outcomes = rows.loc[kind == Kind.OUTCOME.value, told].drop_duplicates(
        "decision_id", keep="last"
    )
    known = outcomes["decision_id"].isin(decisions["decision_id"])
    return DecisionLog(
        decisions.merge(outcomes, on="decision_id", how="left"),
        int((~known).sum()),
        int(rows.loc[kind == Kind.GAP.value, "lost"].sum()),
    )
