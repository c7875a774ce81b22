"""Checked text rows of queries and outcomes to an eval set in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.spelling import counted, counted_that
from hydra_core.base.types import FloatArray
from hydra_core.catalog.identifiers import look_alikes
from hydra_core.catalog.prices.recorded import implausible_costs
from hydra_core.evalsets.importers.draft import Draft, Dropped, language_of, report_on
from hydra_core.evalsets.importers.reading.cells import (
    FILE,
    LINE,
    Issues,
    among,
    first_places,
    flags,
    language_codes,
    note,
    numbers,
)
from hydra_core.evalsets.rules import (
    EXTRA_OUTCOMES,
    FLAGS,
    OPTIONAL_QUERY_COLUMNS,
    model_id_problem,
    outcome_matrices,
)

#: What an import without texts warns of.
NO_TEXTS = "there are no texts: this set cannot be scored here, and what reads texts leaves it out"

#: What stands for a missing text; what else is no number may be a text.
MISSING_TEXTS = frozenset({"nan", "null", "none", "n/a", "na", "#n/a"})
#: The column of outcomes that counts the attempts of a model at a query.
ATTEMPT = "attempt"
_NO_COSTS = "without costs or tokens no router can be replayed on this set"
_EXAMPLES = 3
#: Seconds that half of all answers take longer than only where milliseconds are meant.
_SLOW_S = 120.0
#: Outcomes of a model that are hardly all 0 by chance.
_MANY = 5


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Raw rows, every cell text, each with its FILE and LINE.

    Attributes:
        queries: query_id, text, ... (a query may occur in many rows, its cells blank or equal).
        outcomes: query_id, model, quality, cost_usd, ... (one row per query and model).
    """

    queries: pd.DataFrame
    outcomes: pd.DataFrame
    warnings: tuple[str, ...] = ()


def assemble(
    rows: Rows,
    source: str,
    *,
    scale: float = 1.0,
    need_text: bool = True,
    issues: Issues | None = None,
) -> Draft:
    """Check the rows, line them up, drop what has no text or no outcome, and report it.

    Queries and models come out sorted by id, so the order of rows and files does not matter.

    Args:
        need_text: Drop queries without text; else, where no query has one, the set has none.

    Raises:
        EvalSetError: With every problem found.
    """
    issues = issues or Issues()
    rows = _with_plain_ids(rows)
    _check_ids(rows, issues)
    outcomes = _outcomes(rows.outcomes, issues, scale)
    queries = _queries(rows.queries, issues, need_text=need_text)
    issues.raise_any(source)
    uncounted = _uncounted(rows.outcomes, outcomes)
    again = _repeated(outcomes)
    repeated, (outcomes, averaged) = outcomes[again], _averaged(outcomes[~again])
    no_quality = outcomes["quality"].isna()
    known = outcomes.loc[~no_quality]
    ids = pd.Index(queries["query_id"])
    no_text = sorted(set(known["query_id"]) - set(ids))
    no_outcome = ~ids.isin(known["query_id"])
    dropped = [
        Dropped("outcome that an earlier row holds too", len(repeated), _ids(repeated)),
        Dropped("row without a quality", int(no_quality.sum()), _ids(outcomes[no_quality])),
        Dropped("query without text", len(no_text), tuple(no_text[:_EXAMPLES])),
        Dropped("query without an outcome", int(no_outcome.sum()), _ids(queries[no_outcome])),
    ]
    queries = queries.loc[~no_outcome].reset_index(drop=True)
    known = known.loc[known["query_id"].isin(queries["query_id"])]
    if known.empty:
        reasons = "; ".join(str(entry) for entry in dropped if entry.count) or "the files are empty"
        raise EvalSetError.of(source, f"no rows are left: {reasons}")
    queries, warnings = _with_languages(queries)
    silent = sorted({*outcomes["model"]} - {*known["model"]})
    if silent:
        warnings.append(f"{', '.join(silent)} has no outcome on a query that is kept: left out")
    return _draft(queries, known, dropped, [*rows.warnings, *uncounted, *averaged, *warnings])


def _averaged(outcomes: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The outcomes, several attempts at a query as their mean (of what all of them have); a note.

    Attempts without a quality are left out.
    """
    if ATTEMPT not in outcomes:
        return outcomes, []
    plain = outcomes.drop(columns=ATTEMPT)
    pair = ["query_id", "model"]
    known = plain[plain["quality"].notna()]
    counts = known.groupby(pair).size()
    several = int((counts > 1).sum())
    if not several:
        return plain, []
    means = known.groupby(pair, sort=False).agg(partial(pd.Series.mean, skipna=False))
    unknown = plain[plain["quality"].isna()]
    are = counted_that(several, "outcome", "is", "are")
    note = f"{are} the mean of several attempts (up to {counts.max()})"
    return pd.concat([means.reset_index(), unknown], ignore_index=True), [note]


def _uncounted(raw: pd.DataFrame, parsed: pd.DataFrame) -> list[str]:
    """A warning of outcomes whose 0 input tokens count as not known."""
    if "input_tokens" not in parsed:
        return []
    stated = ~among(raw["input_tokens"], ("", "nan"))
    count = int((stated & parsed["input_tokens"].isna()).sum())
    state = counted_that(count, "outcome", "states", "state")
    text = f"{state} 0 input tokens, so their tokens count as not known"
    return [text] if count else []


def _with_plain_ids(rows: Rows) -> Rows:
    """Query ids without spaces around them, and whole numbers that were written as 7.0 as 7."""
    ids = pd.concat([rows.queries["query_id"], rows.outcomes["query_id"]]).drop_duplicates()
    plain = ids.str.strip()
    spaced = int((plain != ids).sum())
    notes = [f"spaces around {counted(spaced, 'query id')} were left out"] if spaced else []
    floats = plain.str.fullmatch(r"[0-9]+\.0")
    if floats.any() and plain.str.fullmatch(r"[0-9]+(?:\.0)?|").all():
        plain = plain.str.removesuffix(".0")
        were = counted_that(int(floats.sum()), "query id", "was", "were")
        notes.append(f"{were} read as whole numbers, such as {ids[floats].iloc[0]}")
    if not notes:
        return rows
    new = dict(zip(ids, plain, strict=True))
    queries, outcomes = (
        frame.assign(query_id=frame["query_id"].map(new)) for frame in (rows.queries, rows.outcomes)
    )
    return Rows(queries, outcomes, (*rows.warnings, *notes))


def _ids(frame: pd.DataFrame) -> tuple[str, ...]:
    return tuple(frame["query_id"].drop_duplicates().iloc[:_EXAMPLES])


def _draft(
    queries: pd.DataFrame, known: pd.DataFrame, dropped: Sequence[Dropped], warnings: list[str]
) -> Draft:
    models = tuple(sorted(known["model"].unique()))
    ids = pd.Index(queries["query_id"])
    matrices = outcome_matrices(known, ids, models)
    quality, cost_usd = matrices.pop("quality"), matrices.pop("cost_usd")
    if np.isnan(cost_usd).all():
        sides = (matrices.get(f"{side}_tokens", np.nan) for side in ("input", "output"))
        tokens = bool(np.logical_and(*map(np.isfinite, sides)).any())
        follows = (
            "they are computed from the tokens and a catalog's prices" if tokens else _NO_COSTS
        )
        warnings.append(f"there are no costs: {follows}")
    elif free := int((cost_usd == 0).sum()):
        cost = counted_that(free, "outcome", "costs", "cost")
        warnings.append(f"{cost} exactly 0; leave unknown costs empty")
    warnings += _doubts(models, quality, matrices)
    report = report_on(models, quality, cost_usd, dropped, warnings, queries)
    draft = Draft(queries, models, quality, cost_usd, report, matrices)
    odd = implausible_costs(draft)
    return replace(draft, report=replace(report, warnings=(*report.warnings, *odd)))


def _doubts(
    models: Sequence[str], quality: FloatArray, extras: Mapping[str, FloatArray]
) -> list[str]:
    """What is valid and yet looks wrong: names alike, only zeros, times in milliseconds."""
    found = []
    for names in look_alikes(models):
        found.append(f"{' and '.join(names)} may be one model under several names")
    known = np.isfinite(quality).sum(axis=0)
    zero = [m for m, n, s in zip(models, known, np.nansum(quality, axis=0), strict=True)
            if n >= _MANY and s == 0]  # fmt: skip
    if zero:
        found.append(f"every outcome of {', '.join(zero)} is 0; check that its column is quality")
    found += _uncounted_parts(extras)
    latency = extras.get("latency_s", np.full(1, np.nan))
    if np.isfinite(latency).any() and np.nanmedian(latency) > _SLOW_S:
        middle = f"{np.nanmedian(latency):,.0f}"
        found.append(f"half of the answers took more than {middle} s; check that times are seconds")
    return found


def _uncounted_parts(extras: Mapping[str, FloatArray]) -> list[str]:
    """A warning of totals that input and output tokens do not add up to."""
    unknown = np.full((1, 1), np.nan)
    total, read, written = (
        extras.get(name, unknown) for name in ("tokens", "input_tokens", "output_tokens")
    )
    more = total > read + written
    if not more.any():
        return []
    at = tuple(np.argwhere(more)[0])
    have = counted_that(int(more.sum()), "outcome", "has", "have")
    return [
        f"{have} more tokens in all ({total[at]:,.0f}) than input and output tokens together "
        f"({(read + written)[at]:,.0f}); if reasoning or cached input is counted apart, add it to "
        "output_tokens or input_tokens, or costs of tokens are too low"
    ]


def _outcomes(raw: pd.DataFrame, issues: Issues, scale: float) -> pd.DataFrame:
    for model in raw["model"].unique():
        problem = model_id_problem(model)
        if problem is not None:
            rows = raw.loc[raw["model"] == model]
            message = f"model {problem.message}"
            issues.add_rows(message, first_places(rows), len(rows), problem.remedy)
    data: dict[str, object] = {"query_id": raw["query_id"], "model": raw["model"]}
    read = partial(numbers, raw, issues=issues)
    remedy = "quality is a share from 0 to 1"
    data["quality"] = read("quality", high=1.0, remedy=remedy, scale=scale)
    data["cost_usd"] = read("cost_usd", remedy="give USD per query")
    for name in EXTRA_OUTCOMES:
        if name in raw.columns:
            data[name] = read(name)
    if ATTEMPT in raw.columns:
        data[ATTEMPT] = raw[ATTEMPT].str.strip()
    parsed = pd.DataFrame(data, index=raw.index)
    if "input_tokens" in parsed:  # no request has none: it is how a log says that it did not count
        sides = [name for name in ("input_tokens", "output_tokens") if name in parsed]
        parsed.loc[parsed["input_tokens"] == 0, sides] = np.nan
    if {"input_tokens", "cached_input_tokens"} <= {*parsed}:
        beyond = parsed["cached_input_tokens"] > parsed["input_tokens"]
        first = raw.loc[beyond, ["cached_input_tokens", "input_tokens"]].iloc[:1]
        shown = "".join(f" ({warm} of {read})" for warm, read in first.to_numpy())
        text = f"cached_input_tokens are a part of input_tokens and more than these{shown}"
        note(
            issues,
            raw,
            beyond,
            text,
            "add what was read from a cache, and put into it, to input_tokens, in every row",
        )
    _check_pairs(raw, parsed, issues)
    return parsed


def _repeated(parsed: pd.DataFrame) -> pd.Series:
    """Which outcomes stand in an earlier row too: the same query, model and values."""
    return parsed["quality"].notna() & parsed.duplicated()


def _check_pairs(raw: pd.DataFrame, parsed: pd.DataFrame, issues: Issues) -> None:
    """Outcomes of one query and model that disagree, each with the row it disagrees with."""
    once = parsed[parsed["quality"].notna() & ~_repeated(parsed)]
    pair = [name for name in ("query_id", "model", ATTEMPT) if name in once]
    twice = once[once.duplicated(pair)]
    if twice.empty:
        return
    first = once.drop_duplicates(pair).reset_index().set_index(pair)["index"]
    shown = twice.iloc[:_EXAMPLES]
    before = raw.loc[[first[tuple(one)] for one in shown[pair].to_numpy()]]
    places = [
        f"{file} line {line} (before: {other} line {at})"
        for (file, line), (other, at) in zip(
            first_places(raw.loc[shown.index]), first_places(before), strict=True
        )
    ]
    more = ", ..." if len(twice) > len(shown) else ""
    text = f"query and model occur before with other values: {', '.join(places)}{more}"
    remedy = "keep one row for each; repeated attempts are averaged by a column that counts them, "
    remedy += "such as attempt"
    issues.problem(Problem(f"{len(twice)} row(s)", text, remedy))


def _check_ids(rows: Rows, issues: Issues) -> None:
    """Ids that are rounded or empty; a row of a table counts once, however many outcomes it has."""
    frames = [frame[["query_id", FILE, LINE]] for frame in (rows.queries, rows.outcomes)]
    raw = pd.concat(frames, ignore_index=True).drop_duplicates(ignore_index=True)
    rounded = raw["query_id"].str.fullmatch(r"[0-9](?:[.,][0-9]+)?[eE]\+[0-9]{2,}")
    shown = raw.loc[rounded, "query_id"].iloc[:1].to_list()
    text = f"query_id was rounded, such as {shown[0]}: several may be one" if shown else ""
    note(issues, raw, rounded, text, "export the ids as text, with all of their digits")
    note(issues, raw, raw["query_id"].str.strip() == "", "query_id is empty", "give every row one")


def _queries(raw: pd.DataFrame, issues: Issues, *, need_text: bool) -> pd.DataFrame:
    """One row per query that has text, sorted by id, typed columns; language may be empty.

    Where none has a text and none needs one, one row per query, without that column.
    """
    raw = raw.copy()
    raw["text"] = raw["text"].mask(among(raw["text"], MISSING_TEXTS), "")
    if "language" in raw.columns:
        raw["language"] = language_codes(raw, issues)
    texts = _single(raw, "text", issues).sort_index()
    queries = pd.DataFrame({"query_id": texts.index, "text": texts.to_numpy()})
    if texts.empty and not need_text:
        texts = texts.reindex(sorted(set(raw["query_id"])))
        queries = pd.DataFrame({"query_id": texts.index})
    for name in raw.columns:
        if name not in ("query_id", "text", FILE, LINE):
            cells = _single(raw, name, issues).reindex(texts.index, fill_value="")
            queries[name] = cells.to_numpy()
    if "language" not in queries.columns:
        queries["language"] = ""
    places = raw.drop_duplicates("query_id").set_index("query_id")[[FILE, LINE]]
    return _typed(queries, places.reindex(texts.index), issues)


def _single(raw: pd.DataFrame, name: str, issues: Issues) -> pd.Series:
    """The one value of a column for each query that has any; two values are an issue."""
    filled = raw.loc[raw[name].str.strip() != "", ["query_id", name, FILE, LINE]]
    distinct = filled.drop_duplicates(["query_id", name])
    other = distinct["query_id"].duplicated()
    remedy = "one query_id must always have the same"
    note(issues, distinct, other, f"{name} differs from an earlier row's", f"{remedy} {name}")
    return distinct.loc[~other].set_index("query_id")[name]


def _typed(queries: pd.DataFrame, places: pd.DataFrame, issues: Issues) -> pd.DataFrame:
    located = queries.assign(**{FILE: places[FILE].to_numpy(), LINE: places[LINE].to_numpy()})
    for name in list(queries.columns):
        if name.startswith("label_"):
            queries[name] = numbers(located, name, issues, high=1.0)
        elif name == "turn":
            queries[name] = numbers(located, name, issues, low=1.0)
        elif name == "context_tokens":
            queries[name] = numbers(located, name, issues)
        elif name in FLAGS:
            queries[name] = flags(located, name, issues)
    first = [name for name in ("query_id", "text", "language") if name in queries.columns]
    rest = [n for n in OPTIONAL_QUERY_COLUMNS if n in queries.columns and n not in first]
    labels = sorted(name for name in queries.columns if name.startswith("label_"))
    return queries[[*first, *rest, *labels]]


def _with_languages(queries: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    unknown = queries["language"] == ""
    warnings = [] if "text" in queries.columns else [NO_TEXTS]
    if not unknown.any():
        return queries, warnings
    if warnings:
        count = f"the language of {counted(int(unknown.sum()), 'query')} is not known"
        return queries.assign(language=queries["language"].mask(unknown, "und")), [*warnings, count]
    guessed = queries.loc[unknown, "text"].map(language_of)
    queries = queries.assign(language=queries["language"].mask(unknown, guessed))
    return queries, [
        f"the language of {counted(int(unknown.sum()), 'query')} was guessed from their text"
    ]
