"""Reading a decision log back: decisions with their outcomes, and what is known to be lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hydra_core.decision_log.records import SCHEMA, Kind
from hydra_core.decision_log.writer import LogError, lines_table, open_segments, parquet_segments

_OUTCOME: Final = ("quality", "source", "comment", "author")
#: What is read in any case: it says what a row is, and which outcome belongs to which decision.
_BINDING: Final = ("kind", "at", "decision_id", "quality", "lost")


@dataclass(frozen=True, slots=True, eq=False)
class DecisionLog:
    """A log in memory.

    Attributes:
        decisions: One row a decision, oldest first, columns of `records.SCHEMA`; `quality`,
            `source`, `comment` and `author` are those of its newest outcome, empty where none came.
        orphans: Outcomes of decisions that are not in the log.
        lost: Records that are known to be lost.
    """

    decisions: pd.DataFrame
    orphans: int
    lost: int


def read_log(
    folder: Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    arm: str | None = None,
    columns: Sequence[str] | None = None,
) -> DecisionLog:
    """Every record of a log folder, those still being written included.

    Args:
        columns: Only these, beside what binds outcomes to decisions; None for all.
        since: Leave out decisions before this moment; segments that ended earlier are not opened.
        until: Leave out decisions from this moment on.
        arm: Only decisions of this arm of a canary (`canary`, `main`).

    Raises:
        LogError: The folder is not there, a segment is damaged, or decisions are of other arms.
    """
    if not folder.is_dir():
        raise LogError(f"{folder}: there is no such log folder")
    done = parquet_segments(folder)
    if since is not None:
        done = [path for path in done if path.stat().st_mtime >= since.timestamp()]
    finished = {path.stem for path in done}
    names = SCHEMA.names if columns is None else list(dict.fromkeys([*_BINDING, *columns]))
    schema = pa.schema([SCHEMA.field(name) for name in names])
    tables = [_since(_parquet(path, schema), since) for path in done]
    for path in open_segments(folder):
        if path.stem not in finished:  # else: finished a moment ago and about to be removed
            tables.append(_since(_open_segment(path, schema), since))
    table = pa.concat_tables(tables) if tables else schema.empty_table()
    found = _joined(table.to_pandas())
    kept = found.decisions
    if until is not None:
        kept = kept[kept["at"] < until]
    if arm is not None:
        kept = _of_arm(kept, arm, folder)
    return DecisionLog(kept.reset_index(drop=True), found.orphans, found.lost)


def _of_arm(decisions: pd.DataFrame, arm: str, folder: Path) -> pd.DataFrame:
    """The decisions of one arm of a canary; where they are all of others, an error names those."""
    arms = decisions["arm"].fillna("")
    if len(decisions) and not (arms == arm).any():
        there = ", ".join(sorted(set(arms) - {""}))
        raise LogError(
            f"{folder}: none of {len(decisions):,} decisions is of the arm {arm!r}"
            + (f", all are of {there}" if there else ": there was no canary; leave out --arm")
        )
    return decisions[arms == arm]


def _since(table: pa.Table, since: datetime | None) -> pa.Table:
    """What is wanted of one segment, so that no more is kept in memory."""
    if since is None:
        return table
    return table.filter(pc.greater_equal(table["at"], pa.scalar(since, table["at"].type)))


def _open_segment(path: Path, schema: pa.Schema) -> pa.Table:
    """A segment that was being written a moment ago, and may have been finished since."""
    try:
        return lines_table(path).select(schema.names)
    except FileNotFoundError:
        finished = path.with_suffix(".parquet")
        return _parquet(finished, schema) if finished.is_file() else schema.empty_table()


def _parquet(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        return pq.read_table(path, schema=schema)
    except (OSError, pa.ArrowException) as error:
        raise LogError(
            f"{path}: is damaged: {error}; move it to another folder to read the others"
        ) from error


def _joined(rows: pd.DataFrame) -> DecisionLog:
    rows = rows.sort_values("at", kind="stable")
    kind = rows["kind"]
    decisions = rows.loc[kind == Kind.DECISION.value]
    columns = ["decision_id", *(name for name in _OUTCOME if name in rows)]
    decisions = decisions.drop(columns=["kind", "lost", *columns[1:]])
    outcomes = rows.loc[kind == Kind.OUTCOME.value, columns].drop_duplicates(
        "decision_id", keep="last"
    )
    known = outcomes["decision_id"].isin(decisions["decision_id"])
    return DecisionLog(
        decisions.merge(outcomes, on="decision_id", how="left"),
        int((~known).sum()),
        int(rows.loc[kind == Kind.GAP.value, "lost"].sum()),
    )
