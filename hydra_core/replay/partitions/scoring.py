"""Requirements for the messages of a large set, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.base.whole_file import whole_file
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor, default_predictor
from hydra_core.replay.partitions.parts import Task, batches

#: In front of a dimension's name in a scored part's columns.
REQUIREMENT = "requirement:"


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Adds a column `requirement:<dimension>` for each dimension; text must be in `text`.

    Attributes:
        bundle: The bundle's folder, '' for the shipped one.
    """

    bundle: str = ""

    def __call__(self, task: Task) -> None:
        """Score one part; all its columns are kept.

        Raises:
            EvalSetError: It is damaged or has no column text.
        """
        predictor = _predictor(self.bundle)
        with whole_file(task.target) as fresh:
            writer: pq.ParquetWriter | None = None
            for batch in batches(task.source):
                scored = _scored(batch, predictor)
                writer = writer or pq.ParquetWriter(fresh, scored.schema)
                writer.write_table(scored)
            if writer is None:
                pq.write_table(pq.read_schema(task.source).empty_table(), fresh)
            else:
                writer.close()


def _scored(batch: pa.RecordBatch, predictor: Predictor) -> pa.Table:
    table = pa.Table.from_batches([batch])
    texts = table["text"].to_pylist()
    turns = table["turn"].to_pylist() if "turn" in table.column_names else None
    given = None if turns is None else [int(turn or 1) for turn in turns]
    before = table["context"].to_pylist() if "context" in table.column_names else None
    contexts = None if before is None else [context or "" for context in before]
    scores = predictor.predict(texts, given, contexts).requirements
    for k, name in enumerate(predictor.bundle.dimensions):
        table = table.append_column(f"{REQUIREMENT}{name}", pa.array(scores[:, k]))
    return table


@lru_cache(maxsize=1)
def _predictor(bundle: str) -> Predictor:
    return Predictor(load_bundle(Path(bundle))) if bundle else default_predictor()
