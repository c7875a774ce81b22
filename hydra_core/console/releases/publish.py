"""Publish: what a draft changes, before and after on an eval set, the note, and merging."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Catalog, Rule
from hydra_core.catalog.diff import Change
from hydra_core.console import cache, drafts, replays, selectors, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog import models as catalog_models
from hydra_core.console.catalog import what_if as what_if_tables
from hydra_core.console.drafts import Working
from hydra_core.console.figures.theme import apart
from hydra_core.console.frame import CANARY, LEARNED, MODELS, link
from hydra_core.console.numbers import percent, policy_text
from hydra_core.console.tune.view_learned import headline
from hydra_core.console.view_result import Tile, difference, short
from hydra_core.console.widgets import literal
from hydra_core.export import release
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.replay.compare import Replayed, what_if
from hydra_core.replay.evaluation import Evaluation
from hydra_core.store.merge import Choice, MergeResult, Path, three_way
from hydra_core.store.records import NewerRevisionError
from hydra_core.store.roles import Action

_PUBLISHED = "ship.published"
#: Traffic to models without outcomes from which on publishing asks first.
_MOST_UNKNOWN = 0.01
_MOST_MODELS = 12
_CHOOSE = "(choose)"


def publish(entry: CatalogEntry, working: Working) -> None:
    """Draw everything between a draft and the next revision."""
    done = st.session_state.pop(_PUBLISHED, "")
    if done:
        st.success(literal(done), icon=":material/verified:")
    catalog_models.problems(working)
    if working.behind:
        _merge(entry, working)
        return
    if working.problems or working.catalog is None:
        return
    _tuned(entry, working.catalog)
    if not working.edited and working.newest is not None:
        widgets.empty(
            "Nothing to publish",
            f"Your draft says what revision {working.revision} says. Edit a model or its evidence, "
            "then publish it here.",
            [(MODELS, "Edit the catalog")],
        )
        return
    left, right = st.columns([7, 4], gap="medium")
    with right.container(border=True):
        place = st.container()
        chosen = selectors.choose_evalset(place, working.catalog)
        measured = None if chosen is None else _measured(working, chosen)
        _form(entry, working, chosen if measured else None, measured)
    with left:
        if measured is not None:
            _before_and_after(working, chosen, *measured)
        _what_changes(working)


def _tuned(entry: CatalogEntry, catalog: Catalog) -> None:
    """Offer the policy that was set on Tune, where it is another one."""
    tuning, policy = state.get(), catalog.policy
    found = tuning.policy_for(catalog)
    if tuning.catalog != entry.key or found == policy:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        other = " and other weights" if found.weights != policy.weights else ""
        there, here = policy_text(found), policy_text(policy)
        st.markdown(
            literal(f"On the Tune page you have {there}{other}; here it is {here}."),
            width="stretch",
        )
        st.button(
            "Take it into the draft", icon=":material/tune:", key="ship.take_tuned",
            disabled=not drafts.may_edit(),
            on_click=drafts.editing(entry, lambda text: release.with_policy(text, found)),
        )  # fmt: skip


def _what_changes(working: Working) -> None:
    if not working.edited:
        st.subheader("First revision", anchor=False)
        st.markdown(
            "Nothing is published yet. From this revision on, every change is kept and can be "
            "taken back."
        )
        return
    n = len(working.changes)
    st.subheader(f"{n} change{'s' * (n != 1)} to {working.beginning}", anchor=False)
    changes_list(working.changes)
    if record := drafts.record_text(working.catalog):
        st.caption(literal(record))
    if not n:
        st.caption("Only comments or spelling differ.")
    if st.toggle("Show the lines of YAML", key="ship.lines"):
        both = working.published_text.splitlines(), working.text.splitlines()
        lines = difflib.unified_diff(*both, working.before, "draft", lineterm="", n=2)
        st.code("\n".join(islice(lines, 400)), language="diff")


def changes_list(changes: Iterable[Change]) -> None:
    """Draw changes in words, old and new side by side."""
    frame = release.change_table(tuple(changes))
    if frame.empty:
        return
    column = st.column_config
    tables.kept(
        frame,
        "ship.changes",
        height="content" if len(frame) <= 9 else 360,
        column_config={
            "what": column.TextColumn("", width=70),
            "change": column.TextColumn("What", width=240),
            "before": column.TextColumn("Before", width=115),
            "after": column.TextColumn("After", width=145),
        },
    )


def _measured(working: Working, chosen: SetEntry) -> tuple[_Side | None, _Side] | None:
    """Replay what is published and the draft; None after saying why that cannot be done."""
    assert working.catalog is not None
    try:
        after = _side(chosen, working.catalog)
        before = None
        if working.edited and working.published is not None:
            before = _side(chosen, working.published)
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)))
        return None
    return before, after


def _side(chosen: SetEntry, catalog: Catalog) -> _Side:
    sweep = replays.own_sweep(chosen, catalog)
    evaluation = replays.evaluated(sweep, catalog.policy.knob)
    return _Side(replays.replayed(chosen, catalog), evaluation)


def _before_and_after(
    working: Working, chosen: SetEntry | None, before: _Side | None, after: _Side
) -> None:
    """Draw one table of quality, cost, result and traffic."""
    st.subheader("Before and after" if before else "What it measures", anchor=False)
    changes: Sequence[Tile] = ()
    moved = ""
    if before is not None:
        compared = what_if(before.replayed, after.replayed)
        changes = what_if_tables.tiles(compared, working.before, "draft")
        moved = what_if_tables.sentence(compared)
    _table(_rows(before, after, changes), working.before.capitalize() if before else "")
    if after.evaluation.served_note:
        st.caption(literal(after.evaluation.served_note))
    widgets.recorded_costs(after.replayed.data)
    widgets.notes(after.evaluation.sweep)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        widgets.synthetic_badge(chosen is not None and chosen.info.synthetic)
        if moved:
            st.caption(literal(moved))


def _table(rows: Sequence[_Row], before: str) -> None:
    """Draw the figures beside those `before`; without edits there are none to compare with."""
    names = (before, "Draft", "Change") if before else ("New",)
    lines = [f"| Figure | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for row in rows:
        cells = (row.published, row.new, row.change) if before else (row.new,)
        lines.append(f"| {literal(row.label)} | {' | '.join(map(literal, cells))} |")
    st.markdown("\n".join(lines))
    st.caption("In brackets: 95 % intervals. Quality and cost are kept with the revision.")


def _advice(catalog: Catalog) -> None:
    """Repeat Learned's advice where the draft goes against it."""
    if catalog.outcome_model is None:
        return
    try:
        advised, title, sentence = headline(catalog_outcome_model(catalog))
    except HydraError as error:
        widgets.problem(error)
        return
    by_value = catalog.policy.rule is Rule.VALUE
    if advised is by_value:
        return
    what = "routes by it nevertheless" if by_value else "routes by the shortfall rule"
    widgets.toned(
        "warning", f"{title}: {sentence} This draft {what}.", "This draft goes against Learned"
    )
    link(LEARNED, "See what was learned")


def _form(
    entry: CatalogEntry,
    working: Working,
    chosen: SetEntry | None,
    measured: tuple[_Side | None, _Side] | None,
) -> None:
    me, allowed = identity.actor(), identity.may(Action.PUBLISH)
    st.text_area(
        "Note: why this change", key="ship.note", height=90, disabled=not allowed,
        placeholder="Haiku's price rose on 1 March",
    )  # fmt: skip
    if working.catalog is not None:
        _advice(working.catalog)
    unknown = 1.0 if measured is None else measured[1].replayed.metrics.unknown
    if measured is None:
        st.caption("No eval set fits this catalog, so it is published without measured figures.")
    elif unmeasured := release.unknown_text(measured[1].replayed):
        widgets.toned("warning", unmeasured, "Not measured")
    sure = unknown <= _MOST_UNKNOWN or st.checkbox(
        f"Send {100 * unknown:.0f} % of the traffic to models without outcomes",
        key="ship.unknown", disabled=not allowed,
        help="Nobody has measured how well these models answer. Publish only if you know it from "
        "elsewhere, and watch Live.",
    )  # fmt: skip
    st.button(
        f"Publish revision {working.revision + 1}",
        type="primary",
        icon=":material/publish:",
        width="stretch",
        disabled=not allowed or not sure,
        on_click=_publish,
        args=(entry, working, chosen),
        key="ship.publish",
    )
    as_whom = f"as {me.name} ({me.role.value})"
    text = f"You publish {as_whom}." if allowed else f"You are here {as_whom} and may not publish."
    st.caption(literal(text))
    link(CANARY, "Try it on a share of traffic first", ":material/alt_route:")


def _publish(entry: CatalogEntry, working: Working, chosen: SetEntry | None) -> None:
    """Publish what was shown, and record the eval set it was shown on."""
    note = str(st.session_state.get("ship.note", ""))
    try:
        metrics: dict[str, Any] = {}
        if chosen is not None and working.catalog is not None:
            found = replays.replayed(chosen, working.catalog)
            metrics = release.measured(found, chosen.info)
        text = drafts.record_looked(working, chosen)
        revision = cache.store().publish(
            entry.key, text, actor=identity.actor(), base_revision=working.base_revision,
            note=note, metrics=metrics,
        )  # fmt: skip
    except NewerRevisionError as error:
        widgets.keep_error(error)
        if working.draft is None:  # a first revision becomes a draft: there is something to merge
            drafts.edit(entry, lambda _: working.text)
        return
    except HydraError as error:
        widgets.keep_error(error)
        return
    st.session_state["ship.note"] = ""
    st.session_state[_PUBLISHED] = (
        f"Revision {revision.number} is published. Every page routes with it from now on."
    )
    drafts.renew()


def _merge(entry: CatalogEntry, working: Working) -> None:
    """Merge their revision and my draft, against what both started from."""
    newest = working.newest
    assert newest is not None
    assert working.draft is not None
    began = f"revision {working.base_revision}" if working.base_revision else "the file"
    st.warning(
        literal(
            f"{newest.author} published revision {newest.number} after you began at {began}: "
            f"“{newest.note or 'no note'}”. Nothing is overwritten."
        ),
        title="Merge before you publish",
        icon=":material/merge:",
    )
    base = working.draft.texts[0]
    if working.base_revision:
        base = cache.store().revision(entry.key, working.base_revision).yaml
    try:
        choices = _choices(three_way(base, working.text, newest.yaml))
        merged = three_way(base, working.text, newest.yaml, choices=choices)
    except HydraError as error:
        widgets.problem(error)
        return
    st.markdown(f"**Which of your changes go into revision {newest.number}**")
    if merged.applied:
        changes_list(merged.applied)
    else:
        st.caption("None: it has all your changes already.")
    for problem in merged.problems:
        st.error(literal(str(problem)), icon=":material/error:")
    st.button(
        "Merge into my draft", type="primary", icon=":material/merge:", key="ship.merge",
        help=None if merged.clean else "Correct what is named above, and fill the column Take.",
        disabled=not merged.clean, on_click=_rebase, args=(working, merged),
    )  # fmt: skip


def _choices(result: MergeResult) -> dict[Path, Choice]:
    """Ask whose value stands where both changed it."""
    if not result.conflicts:
        st.caption("You changed different values, so both fit together.")
        return {}
    st.markdown("**You both changed these values. Which one do you take?**")
    rows = [
        (" · ".join(one.path[1:] or one.path), one.base, one.theirs, one.mine, _CHOOSE)
        for one in result.conflicts
    ]
    frame = pd.DataFrame(rows, columns=["where", "base", "theirs", "mine", "take"])
    column = st.column_config
    edited = st.data_editor(
        frame,
        key=f"ship.conflicts.{drafts.generation()}",
        hide_index=True,
        num_rows="fixed",
        disabled=["where", "base", "theirs", "mine"],
        column_config={
            "where": column.TextColumn("Value", width="large"),
            "base": column.TextColumn("Before", width=120),
            "theirs": column.TextColumn("Theirs", width=120),
            "mine": column.TextColumn("Yours", width=120),
            "take": column.SelectboxColumn(
                "Take", options=[_CHOOSE, "theirs", "mine"], required=True
            ),
        },
    )
    picks = dict(zip((one.path for one in result.conflicts), edited["take"], strict=True))
    return {path: take for path, take in picks.items() if take in ("theirs", "mine")}


def _rebase(working: Working, merged: MergeResult) -> None:
    draft = working.draft
    assert draft is not None
    widgets.later(
        lambda: cache.store().drafts.rebase(
            draft, merged.text, actor=identity.actor(), base_revision=working.revision
        )
    )
    drafts.renew()


class _Side(NamedTuple):
    """A catalog with its own policy on an eval set, and its result against the fixed mix."""

    replayed: Replayed
    evaluation: Evaluation


class _Row(NamedTuple):
    """One line of the table, as text."""

    label: str
    published: str
    new: str
    change: str = ""


def _rows(before: _Side | None, after: _Side, changes: Sequence[Tile] = ()) -> tuple[_Row, ...]:
    """Return every line, before and after; `published` is empty for a first revision.

    Beside a change with its interval, as What-if has it, the two figures stand without theirs.
    """
    alone = before is None
    change = {tile.measure.value: tile.interval for tile in changes}
    quality = "Resolved" if after.replayed.data.binary else "Mean quality"

    def row(label: str, text: Callable[[_Side], str], measure: str = "") -> _Row:
        first = "" if before is None else text(before)
        return _Row(label, first, text(after), change.get(measure, ""))

    return (
        row(quality, lambda one: _share(one, "quality", alone), "quality"),
        row("Quality retention", lambda one: _share(one, "qr", alone), "qr"),
        row("Cost per query", lambda one: _cost(one, "mean_cost_usd", alone), "cost_usd"),
        row("Cost per resolved query", lambda one: _cost(one, "per_resolved_usd", alone)),
        row("Against the best fixed mix", lambda one: difference(one.evaluation.verdict)),
        row("Result", lambda one: short(one.evaluation.verdict)),
        *_traffic(before, after),
    )


def _traffic(before: _Side | None, after: _Side) -> tuple[_Row, ...]:
    """Return the share of each model that gets any, cheapest first, and whether it has outcomes."""
    pools = [one.replayed.data for one in (after, before) if one is not None]
    cost = {i: c for data in pools for i, c in zip(data.pool.ids, data.pool.cost, strict=True)}
    unmeasured = {model for data in pools for model in data.unmeasured}
    shares = [{} if one is None else one.replayed.metrics.shares for one in (before, after)]
    models = sorted(
        (model for model in cost if any(mix.get(model, 0.0) for mix in shares)),
        key=cost.__getitem__,
    )
    lines, short = [], apart(models, 28)
    for model in models[:_MOST_MODELS]:
        first, then = (mix.get(model, 0.0) for mix in shares)
        lines.append(
            _Row(
                f"Traffic to {short[model]}" + (" (no outcomes)" if model in unmeasured else ""),
                "" if before is None else f"{100 * first:.1f} %",
                f"{100 * then:.1f} %",
                "" if before is None else f"{signed(100 * (then - first))} points",
            )
        )
    if len(models) > _MOST_MODELS:
        lines.append(_Row(f"and {len(models) - _MOST_MODELS} more models", "", ""))
    return tuple(lines)


def _share(side: _Side, name: str, with_interval: bool) -> str:
    value, interval = percent(getattr(side.replayed.metrics, name))
    if side.replayed.metrics.unknown:
        value = f"≥ {value}"
    return f"{value} ({interval})" if interval and with_interval else value


def _cost(side: _Side, name: str, with_interval: bool) -> str:
    cost: Interval = getattr(side.replayed.metrics, name)
    each = name == "per_resolved_usd"
    if math.isnan(cost.value):
        return "–"
    unknown = each and side.replayed.metrics.unknown
    interval = f" ({cost.bounds(usd, ' – ')})" if with_interval else ""
    return f"{'≤ ' if unknown else ''}{usd(cost.value)}{interval}"
