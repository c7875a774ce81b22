"""The significance table of the verb evaluate: on the terminal, as JSON, CSV or LaTeX."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.cli.output import print_json, progress_bar, say, table

if TYPE_CHECKING:
    from hydra_core.replay.baselines.run import BaselineRun
    from hydra_core.replay.evaluation import Evaluation
    from hydra_core.replay.significance_table import SignificanceTable


def print_table(options: argparse.Namespace, found: Evaluation) -> None:
    """Make the table and put it where it was asked for.

    Raises:
        CatalogError: A point is no number, or the file is neither CSV nor LaTeX.
    """
    from hydra_core.replay.report.significance import common_table, significance_document

    _require_known(options.table)
    made = common_table(
        found.sweep,
        [found.knob, *_points(options.points)],
        strong=found.baseline,
        fixed=options.fixed,
        learned=_learned(found) if options.baselines else (),
    )
    if options.table != "-":
        _write(Path(options.table), made)
    elif options.json:
        print_json(significance_document(made))
    else:
        print(_text(made))


def _require_known(target: str) -> None:
    if target != "-" and Path(target).suffix not in (".csv", ".tex"):
        remedy = "name a file that ends in .csv or .tex, or none for the terminal"
        raise CatalogError("--table", [Problem("", f"{target!r} is neither CSV nor LaTeX", remedy)])


def _points(text: str | None) -> list[float]:
    try:
        points = [float(part) for part in text.split(",")] if text else []
    except ValueError:
        points = [math.nan]
    if not all(math.isfinite(point) and point >= 0 for point in points):
        remedy = "numbers >= 0 with commas, such as 0.1,0.2"
        raise CatalogError("--points", [Problem("", f"{text!r} are no points", remedy)])
    return points


def _learned(found: Evaluation) -> tuple[BaselineRun, ...]:
    from hydra_core.replay.baselines.run import BASELINES, RANDOM_MIX, run_baselines

    sweep = found.sweep
    if sweep.evalset.texts is None:
        say("note: the set has no texts, which learned routers read: left out")
        return ()
    texts = sweep.evalset.texts.astype(str).iloc[sweep.data.rows].tolist()
    names = tuple(name for name in BASELINES if name != RANDOM_MIX)
    with progress_bar("learned routers", unit=" steps") as step:
        return tuple(run_baselines(sweep.data, texts, names=names, progress=step))


def _write(path: Path, made: SignificanceTable) -> None:
    from hydra_core.export.downloads import csv_file
    from hydra_core.replay.report.significance import latex, pair_frame, standing_frame

    files = {path: latex(made).encode()}
    if path.suffix == ".csv":
        pairs = path.with_name(f"{path.stem}-pairs.csv")
        files = {path: csv_file(standing_frame(made)), pairs: csv_file(pair_frame(made))}
    for file, content in files.items():
        file.write_bytes(content)
        say(f"written to {file}")


def _text(made: SignificanceTable) -> str:
    from hydra_core.replay.report.significance import HEAD, matrix, standing_cells

    cells = matrix(made)
    numbers = [f"({i + 1})" for i in range(len(cells))]
    rows = [
        [f"({i + 1}) {name}", *row]
        for i, (name, row) in enumerate(zip(cells.index, cells.to_numpy().tolist(), strict=True))
    ]
    return "\n".join(
        [
            f"{made.n:,} queries, {made.independent:,} independent",
            table(list(HEAD), standing_cells(made)),
            "",
            "row minus column, points of quality; * where the corrected p is below 0.05",
            table(["", *numbers], rows),
            "",
            *made.methods,
        ]
    )
