"""From a pair of policies to the lists of queries and one query's receipts.

No streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from hydra_core.base.intervals import DIFFERENCE, Interval
from hydra_core.base.types import FloatArray, IntArray, Rule
from hydra_core.console.compare.view import Paired, Side
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.predictor.languages import group_of, language_name
from hydra_core.replay.compare import PolicyRun
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.metrics import SMALL
from hydra_core.replay.significance import holm, mcnemar, mean_interval, saving_interval
from hydra_core.replay.sweep import Sweep


def group_table(evaluation: Evaluation) -> pd.DataFrame:
    """One row per language group: n, QR and savings in percent, and QR and savings minus English.

    Every figure with its 95 % bounds as `_lo` and `_hi`; NaN differences for English itself.
    """
    apart = {one.group: one for one in evaluation.spreads}
    unknown = Interval.none(np.nan, "not in both")
    rows = []
    for one in evaluation.groups:
        to = apart.get(one.name)
        rows.append(
            {"group": one.name, "n": one.n, "small": one.small}
            | one.qr.scaled(100.0).columns("qr")
            | one.cs.scaled(100.0).columns("cs")
            | (to.qr if to else unknown).scaled(100.0).columns("qr_english")
            | (to.cs if to else unknown).scaled(100.0).columns("cs_english")
        )
    return pd.DataFrame(rows)


def slices(both: Paired, evalset: EvalSet, by: str) -> pd.DataFrame:
    """Deltas of B against A by language or group, the largest first.

    Args:
        by: `language`, `language group`, or a column of the set's queries such as `group`.

    Returns:
        One row per value: name, n, quality and savings with bounds in percent points and percent,
        flipped in percent, p (McNemar, Holm-corrected over the rows), small.
    """
    names = slice_names(evalset, by)[both.found.rows]
    values, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    made = [
        _slice(both, str(values[i]), np.flatnonzero(which == i))
        for i in np.lexsort((values, -counts))
    ]
    frame = pd.DataFrame(made)
    return frame.assign(p=list(holm(frame["p"].tolist())))


def slice_names(evalset: EvalSet, by: str) -> np.typing.NDArray[np.str_]:
    """(rows of the eval set,) the slice each query belongs to."""
    name = {"language group": group_of, "language": language_name}.get(by)
    if name is not None:
        codes = evalset.queries["language"].astype(str)
        return codes.map({code: name(code) for code in codes.unique()}).to_numpy(str)
    return evalset.queries[by].fillna("(none)").astype(str).to_numpy(str)


def _slice(both: Paired, name: str, inside: IntArray) -> dict[str, object]:
    clusters = None if both.clusters is None else both.clusters[inside]
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
    units = len(inside) if clusters is None else int(np.unique(clusters).size)
    a, b = both.a.take(inside), both.b.take(inside)
    least, most = (
        mean_interval(values[inside], clusters) for values in (both.found.least, both.found.most)
    )
    quality = least.spanning(most).clipped(*DIFFERENCE).scaled(100.0)
    saved = saving_interval(b.cost_usd, a.cost_usd, clusters).scaled(100.0)
    return {
        "name": name,
        "n": len(inside),
        **quality.columns("quality"),
        **saved.columns("savings"),
        "flipped": 100 * float((a.models != b.models).mean()),
        "p": mcnemar(b.quality, a.quality).p_value,
        "small": units < SMALL,
    }


def grouping(evalset: EvalSet) -> Sequence[str]:
    """What deltas can be shown by."""
    known = [name for name in ("group",) if name in evalset.queries.columns]
    return ("language", "language group", *known)


#: How many losses and wastes are listed.
MOST_TRIAGED = 50
_TEXT_CHARS = 160
_EVEN = 1e-12

#: Both policies, each with what it was replayed on.
Sides = tuple[tuple[Side, Sweep], tuple[Side, Sweep]]


class Which(StrEnum):
    """Which queries are listed.

    LOSSES: B's quality is lower; the largest loss first, among equals where B costs most more.
    WASTES: B costs more and is no better; the largest extra cost first.
    """

    FLIPPED = "Flipped"
    LOSSES = "Dearest losses"
    WASTES = "Largest wastes"


@dataclass(frozen=True, slots=True)
class Filters:
    """Empty fields let everything through.

    Attributes:
        noted: True: only with a note; False: only without; None: all.
    """

    language: str = ""
    before: str = ""
    after: str = ""
    noted: bool | None = None

    @property
    def count(self) -> int:
        """How many are set."""
        return sum(one not in ("", None) for one in astuple(self))


def selected(
    both: Paired,
    which: Which,
    filters: Filters,
    languages: np.typing.NDArray[np.str_],
    noted: frozenset[int],
) -> IntArray:
    """Positions among the common queries as listed; `noted` are rows of the set with a note."""
    found = both.found
    before, after = both.a.models, both.b.models
    quality, cost = found.delta_quality, found.delta_cost
    keep = {
        Which.FLIPPED: before != after,
        Which.LOSSES: quality < -_EVEN,
        Which.WASTES: (cost > _EVEN) & (quality <= _EVEN),
    }[which]
    for wanted, given in (
        (filters.language, languages[found.rows]),
        (filters.before, before),
        (filters.after, after),
    ):
        if wanted:
            keep = keep & (given == wanted)
    if filters.noted is not None:
        known = np.isin(found.rows, np.fromiter(noted, dtype=np.intp, count=len(noted)))
        keep = keep & (known == filters.noted)
    at = np.flatnonzero(keep)
    if which is Which.FLIPPED:
        return at
    first = (quality[at],) if which is Which.LOSSES else ()
    return at[np.lexsort((-cost[at], *first))][:MOST_TRIAGED]


def query_page(both: Paired, sides: Sides, at: IntArray, notes: dict[str, int]) -> pd.DataFrame:
    """Common queries at some positions: what each side chose and changed, and notes by query id."""
    frame = whole_table(both, sides, at)
    shown = {}
    if "text" in frame.columns:
        text = frame["text"].str.slice(0, _TEXT_CHARS * 2).str.replace(r"\s+", " ", regex=True)
        shown["text"] = text.str.slice(0, _TEXT_CHARS)
    return frame.assign(
        **shown,
        quality_change=100 * frame["quality_change"],
        notes=[float(notes.get(str(query), np.nan)) for query in frame["query_id"]],
    )


def whole_table(both: Paired, sides: Sides, at: IntArray) -> pd.DataFrame:
    """As `query_page`, whole texts, for a download; quality in [0, 1], cost in USD.

    With the query's requirements, and where a side routes by value its predicted success.
    """
    found, a, b = both.found, both.a.take(at), both.b.take(at)
    evalset = sides[0][1].evalset
    queries = evalset.queries.iloc[found.rows[at]]
    texts = {} if evalset.texts is None else {"text": queries["text"].astype(str).to_numpy()}
    frame = pd.DataFrame(
        {
            "query_id": queries["query_id"].astype(str).to_numpy(),
            "language": queries["language"].astype(str).to_numpy(),
            "model_a": a.models,
            "model_b": b.models,
            "quality_a": a.known_quality,
            "quality_b": b.known_quality,
            "quality_change": found.delta_quality[at],
            "cost_usd_a": a.cost_usd,
            "cost_usd_b": b.cost_usd,
            "cost_change_usd": found.delta_cost[at],
        }
    )
    return frame.assign(**_read_of((a, b), sides), **texts)


def _read_of(runs: tuple[PolicyRun, PolicyRun], sides: Sides) -> dict[str, FloatArray]:
    """What was read of the queries: requirements, and the success predicted for each choice."""
    rows = runs[0].rows
    data, catalog = sides[0][1].data, sides[0][1].catalog
    needs = data.requirements[np.searchsorted(data.rows, rows)]
    found = {f"needs_{name}": needs[:, k] for k, name in enumerate(catalog.dimensions)}
    for letter, run, (_, sweep) in zip("ab", runs, sides, strict=True):
        if sweep.data.predicted is None:
            continue
        models = {model: i for i, model in enumerate(sweep.data.pool.ids)}
        chosen = [models.get(str(model), -1) for model in run.models]
        success = sweep.data.predicted.success[np.searchsorted(sweep.data.rows, rows), chosen]
        found[f"predicted_success_{letter}"] = np.where(np.array(chosen) < 0, np.nan, success)
    return found


def receipts(row: int, both: Paired, sides: Sides) -> pd.DataFrame:
    """Why each side chose what it chose for one row of the set, model by model, cheapest first.

    Returns:
        model, quality, cost_usd, and per side `says_of_` (its rule's number, NaN for policies that
        do not read the query) and `says_` (chosen, eligible, not eligible).
    """
    evalset = sides[0][1].evalset
    known = dict(zip(evalset.models, range(len(evalset.models)), strict=True))
    pools = {model for _, sweep in sides for model in sweep.data.pool.ids}
    models = [*both.models, *sorted(pools - set(both.models))]
    measured = evalset.mean_cost()
    cost = {
        model: float(mean)
        for _, sweep in sides
        for model, mean in zip(sweep.data.pool.ids, sweep.data.alone[1], strict=True)
    } | measured
    models.sort(key=lambda model: (cost[model], model))
    frame = pd.DataFrame(
        {
            "model": models,
            "quality": [
                100 * (evalset.quality[row, known[m]] if m in known else np.nan) for m in models
            ],
            "cost_usd": [
                evalset.cost_usd[row, known[m]] if m in known else cost[m] for m in models
            ],
        }
    )
    at = int(np.searchsorted(both.found.rows, row))
    for letter, run, (side, sweep) in zip("ab", (both.a, both.b), sides, strict=True):
        of, says = _receipt(row, models, side, sweep, str(run.models[at]))
        frame[f"says_of_{letter}"], frame[f"says_{letter}"] = of, says
    return frame


def _receipt(
    row: int, models: list[str], side: Side, sweep: Sweep, chosen: str
) -> tuple[list[float], list[str]]:
    """What the side's rule knows of each model for one query: a number, and a word."""
    if side.knob is None:
        nothing = [float("nan")] * len(models)
        return nothing, ["chosen" if model == chosen else "" for model in models]
    at = int(np.searchsorted(sweep.data.rows, row))
    predicted, by_value = sweep.data.predicted, side.rule is Rule.VALUE
    known = predicted.success if by_value and predicted is not None else sweep.terms[0]
    values = dict(zip(sweep.data.pool.ids, known[at].tolist(), strict=True))
    says = [
        "chosen" if model == chosen
        else "not in its pool" if model not in values
        else "worth less" if by_value
        else "eligible" if values[model] <= side.knob
        else "not eligible"
        for model in models
    ]  # fmt: skip
    return [values.get(model, float("nan")) for model in models], says
