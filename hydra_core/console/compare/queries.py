"""The lists of queries on the Compare page: what each holds, filters, pages, receipts, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import signed_usd, titled
from hydra_core.base.types import FloatArray, IntArray, Rule
from hydra_core.console import cache, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.compare import state
from hydra_core.console.compare.view import Paired, Side, Sides, slice_names
from hydra_core.console.frame import MESSAGE, go
from hydra_core.console.inspect import state as inspect_state
from hydra_core.console.numbers import points
from hydra_core.console.widgets import literal
from hydra_core.replay.compare import PolicyRun
from hydra_core.replay.sweep import Sweep
from hydra_core.store.records import Note
from hydra_core.store.roles import Action

#: How many losses and wastes are listed.
MOST_TRIAGED = 50
_LISTED_CHARS = 160
_EVEN = 1e-12


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
        text = frame["text"].str.slice(0, _LISTED_CHARS * 2).str.replace(r"\s+", " ", regex=True)
        shown["text"] = text.str.slice(0, _LISTED_CHARS)
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
        at = np.searchsorted(sweep.data.rows, rows)
        nothing = np.array(chosen) < 0
        if sweep.data.closed is not None:
            nothing |= sweep.data.closed[at, chosen]
        success = sweep.data.predicted.success[at, chosen]
        found[f"predicted_success_{letter}"] = np.where(nothing, np.nan, success)
    return found


def receipts(row: int, both: Paired, sides: Sides) -> pd.DataFrame:
    """Why each side chose what it chose for one row of the set, model by model, cheapest first.

    Returns:
        model, quality, cost_usd (at the prices of B, of A for models that B has not), and per side
        `says_of_` (its rule's number, NaN for policies that do not read the query) and `says_`
        (chosen, eligible, not eligible).
    """
    evalset = sides[0][1].evalset
    known = dict(zip(evalset.models, range(len(evalset.models)), strict=True))
    pools = {model for _, sweep in sides for model in sweep.data.pool.ids}
    models = [*both.models, *sorted(pools - set(both.models))]
    cost: dict[str, float] = {}
    mean: dict[str, float] = {}
    for _, sweep in sides:
        data = sweep.data
        at = int(np.searchsorted(data.rows, row))
        here = data.cost_usd[at].copy()
        if data.closed is not None:  # one that a gate keeps out and never answered has no cost
            answered = [
                m not in known or evalset.quality[row, known[m]] >= 0 for m in data.pool.ids
            ]
            here[data.closed[at] & ~np.array(answered)] = np.nan
        cost |= dict(zip(data.pool.ids, here.tolist(), strict=True))
        mean |= dict(zip(data.pool.ids, data.alone[1].tolist(), strict=True))
    models.sort(key=lambda model: (mean[model], model))
    frame = pd.DataFrame(
        {
            "model": models,
            "quality": [
                100 * (evalset.quality[row, known[m]] if m in known else np.nan) for m in models
            ],
            "cost_usd": [cost[m] for m in models],
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
    closed = sweep.data.closed
    gated = () if closed is None else np.array(sweep.data.pool.ids)[closed[at]]
    values |= dict.fromkeys(map(str, gated), float("nan"))
    says = [
        "chosen" if model == chosen
        else "not in its pool" if model not in values
        else "kept out by a gate" if model in gated
        else "worth less" if by_value
        else "eligible" if values[model] <= side.knob
        else "not eligible"
        for model in models
    ]  # fmt: skip
    return [values.get(model, float("nan")) for model in models], says


_ROWS = 15
_MODEL_PX = 106
_TELLS = {
    Which.FLIPPED: "Queries that the two policies send to different models.",
    Which.LOSSES: f"The {MOST_TRIAGED} queries where B loses most quality; among "
    "equals those where it also spends most.",
    Which.WASTES: f"The {MOST_TRIAGED} queries where B spends most more than A and is no better.",
}
_FILTERS = ("compare.language", "compare.before", "compare.after", "compare.noted")
NOTED = {"all": None, "with a note": True, "without a note": False}
_CAUSES = ("Router wrong", "Label wrong", "Model flaky", "Expected")


@st.fragment
def queries(both: Paired, sides: Sides) -> None:
    """The list that is asked for, a page at a time, and the query that is picked in it."""
    evalset = sides[0][1].evalset
    try:
        notes = cache.store().notes.all(evalset.digest)
    except HydraError as error:
        widgets.problem(error)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        which = widgets.switch("List", list(Which), "compare.which")
        st.space("stretch")
        languages = slice_names(evalset, "language")
        filters = _filters(both, languages)
        by_id = Counter(note.query_id for note in notes)
        ids = evalset.queries["query_id"]
        noted = frozenset(np.flatnonzero(ids.isin(list(by_id))).tolist()) if by_id else frozenset()
        at = selected(both, which, filters, languages, noted)
        tables.offer_downloads(
            lambda: whole_table(both, sides, at), "compare", disabled=not at.size
        )
    st.caption(f"{_TELLS[which]} {at.size:,} found.")
    if not at.size:
        st.info(_nothing(which, filters), icon=":material/check_circle:")
        return
    picked = _table(both, sides, at, dict(by_id), f"{which}.{filters}")
    row = state.query_shown(picked, ids, both.found.rows)
    state.write()
    if row is None:
        st.caption("Pick a row to see why each policy chose what it chose, and to write a note.")
        return
    with st.container(border=True):
        _detail(row, both, sides, [n for n in notes if n.query_id == str(ids.iloc[row])])


def _nothing(which: Which, filters: Filters) -> str:
    if filters.count:
        return "No query passes the filters. Take some back."
    return {
        Which.FLIPPED: "Both policies send every query to the same model.",
        Which.LOSSES: "B loses quality on no query.",
        Which.WASTES: "B spends nothing more than A without a gain.",
    }[which]


def _filters(both: Paired, languages: np.typing.NDArray[np.str_]) -> Filters:
    count = sum(bool(st.session_state.get(key)) for key in _FILTERS[:3])
    count += st.session_state.get(_FILTERS[3], "all") != "all"
    known = (
        ("Language", sorted(pd.unique(languages).tolist()), _FILTERS[0]),
        ("A sent it to", both.models, _FILTERS[1]),
        ("B sends it to", both.models, _FILTERS[2]),
    )
    for _, options, key in known:
        if st.session_state.get(key, "") not in ("", *options):  # a link of another set
            st.session_state[key] = ""
    with st.popover(f"Filters ({count})" if count else "Filters", icon=":material/filter_list:"):
        language, before, after = (
            st.selectbox(
                label,
                ["", *options],
                format_func=lambda value: value or "all",
                key=key,
                persist_state="session",
            )
            for label, options, key in known
        )
        noted = st.selectbox("Notes", list(NOTED), key=_FILTERS[3], persist_state="session")
        st.button(
            "Take all back", width="stretch", disabled=not count,
            on_click=lambda: st.session_state.update(
                dict.fromkeys(_FILTERS[:3], "") | {_FILTERS[3]: "all"}
            ),
        )  # fmt: skip
    return Filters(language or "", before or "", after or "", NOTED[noted or "all"])


def _table(
    both: Paired, sides: Sides, at: IntArray, notes: dict[str, int], version: str
) -> int | None:
    """One page of the list; the row number in the eval set of the picked query."""
    pages = -(-at.size // _ROWS)
    key = f"compare.page.{version}.{sides[0][0].name}.{sides[1][0].name}"
    first = st.session_state.setdefault(f"{key}.first", state.first_page(pages))
    page = min(int(st.session_state.get(key, first)), pages)
    st.session_state[state.PAGE] = page
    part = at[(page - 1) * _ROWS : page * _ROWS]
    frame = query_page(both, sides, part, notes)
    read = [name for name in frame.columns if name.startswith(("needs_", "predicted_"))]
    named = "text" if "text" in frame.columns else "query_id"
    column = st.column_config
    columns = {
        named: column.TextColumn("Query", width=164),
        "language": column.TextColumn("Lang.", width=46),
        "model_a": column.TextColumn("A sent it to", width=_MODEL_PX),
        "model_b": column.TextColumn("B sends it to", width=_MODEL_PX),
        "quality_change": column.NumberColumn("Quality", width=70),
        "cost_change_usd": column.NumberColumn("Cost", width=80),
        "notes": column.NumberColumn("Notes", width=50),
        **{name: _read_column(name) for name in read},
    }
    event = st.dataframe(
        tables.spelled(
            frame,
            {
                "model_a": tables.named(_MODEL_PX, both.models),
                "model_b": tables.named(_MODEL_PX, both.models),
                "quality_change": tables.change("+.0f", " pp"),
                "cost_change_usd": signed_usd,
            },
        ),
        hide_index=True,
        height="content",
        key=f"{key}.{page}",
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        column_order=list(columns),
        column_config=columns,
    )
    if pages > 1:
        with st.container(horizontal=True, horizontal_alignment="center"):
            st.pagination(pages, default=first, key=key)
    rows = event["selection"]["rows"]
    return int(both.found.rows[part[rows[0]]]) if rows and rows[0] < len(part) else None


def _read_column(name: str) -> Any:  # noqa: ANN401 (Streamlit's own type)
    """A requirement or a predicted success in [0, 1]."""
    number = st.column_config.NumberColumn
    if name.startswith("predicted_"):
        return number(f"Predicted {name[-1].upper()}", format="percent", width=95)
    needed = titled(name.removeprefix("needs_"))
    label = needed.split()[0]  # all of a query's figures fit a window of 1280 pixels
    text, width = f"{needed}: what the query requires, 0 to 1.", max(7 * len(label) + 18, 52)
    return number(label, format="%.2f", width=width, help=text)


def _detail(row: int, both: Paired, sides: Sides, notes: Sequence[Note]) -> None:
    """One query: its text and notes, and both receipts."""
    evalset = sides[0][1].evalset
    query = evalset.queries.iloc[row]
    at = int(np.searchsorted(both.found.rows, row))
    a, b = both.a.models[at], both.b.models[at]
    quality, cost = both.found.delta_quality[at], both.found.delta_cost[at]
    st.markdown(
        f"**{literal(str(query['query_id']))}** :gray[A] {literal(str(a))} → :gray[B] "
        f"{literal(str(b))} :gray[·] quality **{points(quality, 0)}** :gray[·] cost "
        f"**{literal(signed_usd(float(cost)))}**"
    )
    left, right = st.columns([8, 11], gap="medium")
    with left:
        with st.container(height=190, border=True):
            widgets.message(str(query.get("text", "This set has no texts."))[:_TEXT_CHARS])
        if "text" in query and st.button(
            "Why, on Inspect", icon=":material/troubleshoot:", key="compare.inspect"
        ):
            inspect_state.put(text=str(query["text"]), compare=False)
            go(MESSAGE)
        _written(notes)
        _write(evalset.digest, str(query["query_id"]))
    with right:
        _receipts(receipts(row, both, sides), sides)


_TEXT_CHARS = 8_000
#: What stands beside each model, and what is chosen by it.
_HOW = {
    Rule.SHORTFALL: " Shortfall by model; the cheapest at most τ is chosen.",
    Rule.VALUE: " Predicted success by model; the largest, less predicted cost / V, is chosen.",
}


def _receipts(frame: pd.DataFrame, sides: Sides) -> None:
    column = st.column_config
    shown: dict[str, Any] = {
        "model": column.TextColumn("Model", width=118),
        "quality": column.NumberColumn("Quality", format="%.0f %%", width=62),
        "cost_usd": column.NumberColumn("Cost", format=tables.dollars(frame["cost_usd"]), width=68),
    }
    for letter, (side, _) in zip("ab", sides, strict=True):
        wide = 70 if side.knob is None else 135
        shown[f"says_{letter}"] = column.TextColumn(letter.upper(), width=wide)
        shown_as = "{:.0%} " if side.rule is Rule.VALUE else "{:.4f} "
        known = frame[f"says_of_{letter}"].map(shown_as.format, na_action="ignore")
        frame[f"says_{letter}"] = known.astype(object).fillna("") + frame[f"says_{letter}"]
    tables.kept(frame, "compare.query", columns=shown)
    for letter, (side, _) in zip("AB", sides, strict=True):
        st.caption(f"{letter}: {literal(side.name)}.{_HOW[side.rule] if side.knob else ''}")


def _written(notes: Sequence[Note]) -> None:
    for note in notes:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                f"{literal(note.text)}  \n:gray[{literal(note.author)}, "
                f"{note.created_at:%Y-%m-%d %H:%M}]",
                width="stretch",
            )
            mine = note.author == identity.actor().name
            if identity.may(Action.NOTE if mine else Action.MODERATE):
                st.button(
                    "", icon=":material/delete:", key=f"compare.drop.{note.id}", type="tertiary",
                    help="Delete this note", on_click=widgets.later,
                    args=(lambda note=note: cache.store().notes.remove(
                        note, actor=identity.actor()),),
                )  # fmt: skip


def _write(digest: str, query_id: str) -> None:
    widgets.show_error()
    if not identity.may(Action.NOTE):
        st.caption("Viewers may read notes, not write them.")
        return
    st.pills("Cause", _CAUSES, key="compare.cause", label_visibility="collapsed")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            "Note", key="compare.note", placeholder="What went wrong here?", max_chars=2_000,
            label_visibility="collapsed",
        )  # fmt: skip
        st.button("Save note", key="compare.save", on_click=_save, args=(digest, query_id))


def _save(digest: str, query_id: str) -> None:
    cause = st.session_state.get("compare.cause") or ""
    typed = str(st.session_state.get("compare.note") or "").strip()
    text = ": ".join(part for part in (cause, typed) if part)

    def add() -> None:
        cache.store().notes.add(digest, query_id, text, actor=identity.actor())
        st.session_state.update({"compare.note": "", "compare.cause": None})

    widgets.later(add)
