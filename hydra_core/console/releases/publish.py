"""The Ship page's publishing: what changes, what it measures, the note, and merging."""

from __future__ import annotations

import difflib
from typing import Any

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import usd
from hydra_core.base.types import Catalog, Policy
from hydra_core.console import (
    cache,
    chosen_on,
    drafts,
    learned_models,
    selectors,
    state,
    tables,
    widgets,
)
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog import models as catalog_panels
from hydra_core.console.catalog import what_if as what_if_view
from hydra_core.console.drafts import Working
from hydra_core.console.frame import MODELS
from hydra_core.console.numbers import policy_text
from hydra_core.console.widgets import literal
from hydra_core.export import provenance as release_facts
from hydra_core.export.release import with_policy
from hydra_core.replay.what_if import what_if
from hydra_core.store.merge import Choice, MergeResult, Path, three_way
from hydra_core.store.records import NewerRevisionError
from hydra_core.store.roles import Action

_PUBLISHED = "ship.published"
_QR = "Quality divided by that of the oracle of this draft's own models; What-if has one for both."


def publish(entry: CatalogEntry, working: Working) -> None:
    """Everything between a draft and the next revision."""
    done = st.session_state.pop(_PUBLISHED, "")
    if done:
        st.success(literal(done), icon=":material/verified:")
    catalog_panels.problems(working)
    if working.behind:
        _merge(entry, working)
        return
    if working.problems or working.catalog is None:
        return
    _tuned(entry, working.catalog)
    if not working.edited and working.newest is not None:
        widgets.empty(
            f"Revision {working.revision} is what is published",
            "There is no draft with other values. Edit a model or its evidence, then publish here.",
            [(MODELS, "Edit the catalog")],
        )
        return
    left, right = st.columns([7, 4], gap="medium")
    with left:
        _what_changes(working)
    with right.container(border=True):
        chosen = _measured_on(working)
        _form(entry, working, chosen)


def _tuned(entry: CatalogEntry, catalog: Catalog) -> None:
    """Offer the policy that was found on the Tune page, where it is another one."""
    tuning, policy = state.get(), catalog.policy
    found = tuning.policy_for(catalog)
    if tuning.catalog != entry.key or found == policy:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        other = " and other weights" if found.weights != policy.weights else ""
        there, here = policy_text(found), policy_text(policy)
        told = literal(f"On the Tune page you have {there}{other}; here it is {here}.")
        st.markdown(told, width="stretch")
        st.button(
            "Take it into the draft", icon=":material/tune:", key="ship.take_tuned",
            disabled=not drafts.may_edit(), on_click=_take,
            args=(entry, found),
        )  # fmt: skip


def _take(entry: CatalogEntry, found: Policy) -> None:
    """The point goes into the draft, which records the set in sight as the one it was chosen on."""
    drafts.edit(entry, lambda text: with_policy(text, found))


def _what_changes(working: Working) -> None:
    if not working.edited:
        st.subheader("First revision", anchor=False)
        st.markdown(
            "Nothing was published yet. Publishing takes the file as it is into the store, with "
            "history and the way back from there on."
        )
        return
    n = len(working.changes)
    st.subheader(f"{n} change{'s' * (n != 1)} to what is published", anchor=False)
    changes_list(working.changes)
    if told := chosen_on.summary(working.catalog):
        st.caption(literal(told))
    if not n:
        st.caption("Only comments or spelling differ; the meaning is the same.")
    if st.toggle("Show the lines of YAML", key="ship.lines"):
        st.code(_lines(working.published_text, working.text), language="diff")


def changes_list(changes: Any) -> None:  # noqa: ANN401
    """Changes in words, old and new side by side."""
    frame = release_facts.change_table(tuple(changes))
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
            "published": column.TextColumn("Published", width=115),
            "draft": column.TextColumn("New", width=145),
        },
    )


def _lines(before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "published", "draft", lineterm="", n=2
    )
    return "\n".join(list(lines)[:400])


def _measured_on(working: Working) -> SetEntry | None:
    """The eval set whose figures are kept with the revision, and those figures in short."""
    assert working.catalog is not None
    place = st.container()
    chosen = selectors.choose_evalset(place, working.catalog)
    if chosen is None:
        st.caption("No eval set fits: the revision is published without measured figures.")
        return None
    try:
        after = learned_models.replayed(chosen, working.catalog)
        qr, cost = after.metrics.qr.scaled(100.0), after.metrics.mean_cost_usd
        rows = [("QR", f"{qr.value:.1f} %", f"{qr.lo:.1f} – {qr.hi:.1f} %", _QR)]
        rows.append(("Cost per query", usd(cost.value), f"{usd(cost.lo)} – {usd(cost.hi)}", ""))
        told = "Kept with the revision. "
        if working.edited and working.published is not None:
            before = learned_models.replayed(chosen, working.published)
            told += what_if_view.sentence(what_if(before, after))
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)))
        return None
    for place, (label, value, interval, meant) in zip(st.columns(2), rows, strict=True):
        place.metric(
            label, literal(value), delta=literal(interval), delta_color="off",
            delta_arrow="off", help=f"{meant} With its 95 % interval.".strip(),
        )  # fmt: skip
    widgets.recorded_costs(after.data)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if chosen.info.synthetic:
            widgets.synthetic_badge()
        st.caption(literal(told))
    return chosen


def _form(entry: CatalogEntry, working: Working, chosen: SetEntry | None) -> None:
    me = identity.actor()
    st.text_area(
        "Note: why this change", key="ship.note", height=90,
        placeholder="Haiku's price rose on 1 March",
    )  # fmt: skip
    allowed = identity.may(Action.PUBLISH)
    st.button(
        f"Publish revision {working.revision + 1}",
        type="primary",
        icon=":material/publish:",
        width="stretch",
        disabled=not allowed,
        on_click=_publish,
        args=(entry, working, chosen),
        key="ship.publish",
    )
    as_whom = f"as {me.name} ({me.role.value})"
    text = f"Publishing {as_whom}." if allowed else f"You are here {as_whom}: that may not publish."
    st.caption(literal(text))


def _publish(entry: CatalogEntry, working: Working, chosen: SetEntry | None) -> None:
    """Publish what was shown, with the set it was shown on as one that it was chosen on."""
    note = str(st.session_state.get("ship.note", ""))
    try:
        metrics: dict[str, Any] = {}
        if chosen is not None and working.catalog is not None:
            found = learned_models.replayed(chosen, working.catalog)
            metrics = release_facts.measured(found, chosen.info)
        text = drafts.record_looked(working, chosen)
        revision = cache.store().publish(
            entry.key, text, actor=identity.actor(), base_revision=working.base_revision,
            note=note, metrics=metrics,
        )  # fmt: skip
    except NewerRevisionError as error:
        drafts.keep_error(error)
        _keep_as_draft(entry, working)
        return
    except HydraError as error:
        drafts.keep_error(error)
        return
    st.session_state["ship.note"] = ""
    st.session_state[_PUBLISHED] = (
        f"Revision {revision.number} is published. Every page routes with it from now on."
    )
    drafts.renew()


def _keep_as_draft(entry: CatalogEntry, working: Working) -> None:
    """A first publish has no draft yet; without one there would be nothing to merge."""
    if working.draft is None:
        drafts.edit(entry, lambda _: working.text)


def _merge(entry: CatalogEntry, working: Working) -> None:
    """Their revision and my draft, against what both started from."""
    newest = working.newest
    assert newest is not None
    assert working.draft is not None
    st.warning(
        literal(
            f"{newest.author} published revision {newest.number} after you began at revision "
            f"{working.base_revision}: “{newest.note or 'no note'}”. Nothing was overwritten."
        ),
        title="Merge before you publish",
        icon=":material/merge:",
    )
    base = _base_text(entry, working)
    try:
        open_ = three_way(base, working.text, newest.yaml)
        choices = _choices(open_)
        merged = three_way(base, working.text, newest.yaml, choices=choices)
    except HydraError as error:
        widgets.problem(error)
        return
    st.markdown(f"**Which of your changes go into revision {newest.number}**")
    if merged.applied:
        changes_list(merged.applied)
    else:
        st.caption("Nothing: it says all that you changed.")
    for problem in merged.problems:
        st.error(literal(str(problem)), icon=":material/error:")
    st.button(
        "Merge into my draft", type="primary", icon=":material/merge:", key="ship.merge",
        disabled=not merged.clean, on_click=_rebase, args=(working, merged),
    )  # fmt: skip


def _base_text(entry: CatalogEntry, working: Working) -> str:
    if working.base_revision == 0:
        assert working.draft is not None
        return working.draft.texts[0]
    return cache.store().revision(entry.key, working.base_revision).yaml


def _choices(result: MergeResult) -> dict[Path, Choice]:
    """The three-way view: each value both changed, and whose is taken."""
    if not result.conflicts:
        st.caption("You changed different values: they fit together.")
        return {}
    st.markdown("**Both of you changed these: whose value stands?**")
    frame = pd.DataFrame(
        {
            "where": [" · ".join(one.path[1:] or one.path) for one in result.conflicts],
            "base": [one.base for one in result.conflicts],
            "theirs": [one.theirs for one in result.conflicts],
            "mine": [one.mine for one in result.conflicts],
            "take": ["(choose)"] * len(result.conflicts),
        }
    )
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
            "take": column.SelectboxColumn("Take", options=["theirs", "mine"], required=True),
        },
    )
    picks = dict(zip((one.path for one in result.conflicts), edited["take"], strict=True))
    return {path: take for path, take in picks.items() if take in ("theirs", "mine")}


def _rebase(working: Working, merged: MergeResult) -> None:
    assert working.draft is not None
    try:
        cache.store().drafts.rebase(
            working.draft, merged.text, actor=identity.actor(), base_revision=working.revision
        )
    except HydraError as error:
        drafts.keep_error(error)
    drafts.renew()
