"""The controls of Message: catalog, rule and knob, the message, the request around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, Policy, Rule
from hydra_core.console import bundles, cache, selectors, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.inspect import state as inspect_state
from hydra_core.console.inspect.state import put
from hydra_core.console.inspect.view import examples, family_name
from hydra_core.console.inspect.view_words import valid
from hydra_core.console.numbers import RULES
from hydra_core.console.state import bound
from hydra_core.lab.robustness.attack import load_probes
from hydra_core.predictor.languages import LANGUAGES, detect

_FOUND = 100


def policy(*, compare: bool = True) -> tuple[str, Catalog] | None:
    """Draw catalog and tau; the key and the catalog under the policy in force, None if missing."""
    fingerprint = cache.bundle().fingerprint
    inspect_state.follow_link()
    chosen = selectors.current_catalog()
    if chosen is None:
        st.warning("There is no catalog yet: make one on Eval sets.")
        return None
    in_force = (
        None if chosen.catalog is None else inspect_state.policy_for(chosen.key, chosen.catalog)
    )
    by_choice = bool(
        chosen.catalog and chosen.catalog.success_source and in_force and in_force.value_usd
    )
    widths = [4.0, 3.0, 3.6, 2.4] if by_choice else [4.0, 4.4, 2.6]
    if by_choice and not compare:
        del widths[0]
    places = st.columns(widths, vertical_alignment="bottom", gap="small")
    if compare:
        with places[0]:
            _mode(inspect_state.get().compare)
    if by_choice and in_force:
        with places[-3]:
            choose_rule(in_force.rule)

    def named(entry: CatalogEntry) -> str:
        if entry.catalog is None:
            return f"{entry.key} (not valid)"
        fits = entry.catalog.predictor_fingerprint == fingerprint
        return entry.key if fits else f"{entry.key} (rebind)"

    selectors.choose_catalog(places[-2], named)
    if chosen.catalog is None or in_force is None:
        widgets.toned("error", chosen.problem)
        return None
    with places[-1]:
        knob(in_force)
    catalog = bundles.on_this_bundle(chosen)
    return None if catalog is None else (chosen.key, replace(catalog, policy=in_force))


def _mode(compare: bool) -> None:
    modes = ("One message", "Compare two")
    shown = bound("inspect.mode", modes[compare], lambda mode: put(compare=mode == modes[1]))
    st.segmented_control("Messages", modes, required=True, label_visibility="collapsed", **shown)


def choose_rule(rule: Rule) -> None:
    st.segmented_control(
        "Rule", list(Rule), format_func=RULES.__getitem__, required=True, width="stretch",
        help="The rule whose decision is explained. The decision of the other rule is beside it.",
        label_visibility="collapsed", **bound("inspect.rule", rule, lambda rule: put(rule=rule)),
    )  # fmt: skip


def knob(policy: Policy) -> None:
    """The setting of the rule in force; changing it here changes nothing on Tune."""
    if policy.rule is Rule.VALUE:
        st.number_input(
            "V in USD",
            min_value=1e-9,
            value=None,
            step=float(f"{policy.knob / 10:.1g}"),
            format="%.6g",
            help="V is the value of one more resolved query. It starts at the setting of Tune, or "
            "at the catalog's own. A change here does not change Tune.",
            **bound("inspect.value", policy.knob, lambda usd: put(value_usd=usd)),
        )
        return
    st.number_input(
        "Threshold τ",
        min_value=0.0,
        value=None,
        step=0.01,
        format="%.6g",
        help="tau is the largest weighted shortfall of an eligible model. It starts at the setting "
        "of Tune, or at the catalog's own. A change here does not change Tune.",
        **bound("inspect.tau", policy.tau, lambda tau: put(tau=tau)),
    )


def message(catalog: Catalog, field: str = "text", label: str = "Message") -> None:
    """A message with where to take it from; the first one also with the request around it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{label}**", width="stretch")
        st.button(
            "Route", type="primary", icon=":material/play_arrow:", key=f"inspect.{field}.route",
            help="Routes the message. Ctrl+Enter in the text does the same.",
        )  # fmt: skip
        with st.popover("Pick", icon=":material/list:"):
            _picker(field)
        if field == "other":
            with st.popover("Append", icon=":material/add:"):
                _suffixes()
        else:
            with st.popover("Request", icon=":material/tune:"):
                _request(catalog)
    _area(field, label)


def _area(field: str, label: str) -> None:
    now = inspect_state.get()
    without = field == "text" and now.requirements is not None and not now.text
    st.text_area(
        label,
        height=150 if now.compare else 212,
        placeholder="This link came without its text. The scores below are those of the text."
        if without
        else "Type or paste a message, then press Route or Ctrl+Enter",
        label_visibility="collapsed",
        **_field(field, valid(getattr(now, field))),
    )


def _field(name: str, value: object) -> dict[str, Any]:
    """What makes a widget show a field and write it back."""
    return bound(f"inspect.{name}", value, lambda changed: put(**{name: changed}))


def _picker(field: str) -> None:
    """Shipped examples, or the queries of an eval set."""
    sets = [entry for entry in cache.evalsets() if not entry.info.problem]
    places = ["", *(entry.key for entry in sets)]
    names = {"": "Examples in 16 languages", **{e.key: e.info.name for e in sets}}
    where = st.selectbox(
        "From", places, format_func=lambda key: names[key], key=f"inspect.{field}.from"
    )
    if not where:
        options = {one.label: one.text for one in examples()}
    else:
        entry = next(e for e in sets if e.key == where)
        options = _queries(entry, st.text_input("Containing", key=f"inspect.{field}.find"))

    def take(label: str | None) -> None:
        if label in options:
            put(**{field: options[label]})

    st.selectbox(
        "Message",
        list(options),
        placeholder="Choose one" if options else "Nothing found",
        **bound(f"inspect.{field}.pick", None, take),
    )


def _queries(entry: cache.SetEntry, wanted: str) -> dict[str, str]:
    """Label -> text of the first queries of an eval set that contain `wanted`."""
    try:
        evalset = cache.evalset(entry)
    except HydraError as error:
        widgets.problem(error)
        return {}
    if evalset.texts is None:
        st.caption("This set has no texts. Choose another set, or type a message.")
        return {}
    frame = evalset.queries
    if wanted:
        frame = frame[frame["text"].str.contains(wanted, case=False, regex=False)]
    found = frame.head(_FOUND)
    return {
        valid(f"{language} · {query_id} · {' '.join(text.split())[:60]}"): text
        for query_id, language, text in zip(
            found["query_id"], found["language"], found["text"], strict=True
        )
    }


def _suffixes() -> None:
    """Message B becomes message A with an appended claim of difficulty in its language."""
    now = inspect_state.get()
    language = detect(now.text)
    st.caption(
        "Message B becomes message A with a claim of difficulty at its end. The task stays the "
        f"same, so the model should not change. In {LANGUAGES[language].name}:"
    )
    for family, texts in load_probes().items():
        suffix = texts.get(language) or texts["en"]
        st.button(
            family_name(family),
            key=f"inspect.suffix.{family}",
            width="stretch",
            help=widgets.literal(suffix),
            on_click=put,
            kwargs={"other": f"{now.text}\n\n{suffix}"},
        )


def _request(catalog: Catalog) -> None:
    """What else the request has: its turn, an image, tools, models it may not use."""
    now = inspect_state.get()
    st.number_input("User turn", 1, 99, **_field("turn", now.turn))
    st.number_input(
        "Earlier context, tokens", 0, 99_999_999, step=1_000,
        help="What the model reads besides the message: earlier turns, files, a system prompt.",
        **_field("context_tokens", now.context_tokens),
    )  # fmt: skip
    st.toggle("An image is attached", **_field("has_image", now.has_image))
    st.toggle("Declares tools", **_field("needs_tools", now.needs_tools))
    ids = [model.id for model in catalog.models]
    denied = [name for name in now.deny if name in ids]
    shown = bound("inspect.deny", denied, lambda names: put(deny=tuple(names)))
    st.multiselect("Models it may not use", ids, placeholder="None", **shown)
