"""A policy kept under a name in the store, for Compare to offer from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Policy
from hydra_core.console import cache, drafts, selectors
from hydra_core.console.access import identity
from hydra_core.store.roles import Action

_TOLD = "compare.kept"


def keep(policy: Policy, digest: str, metrics: Mapping[str, Any], key: str) -> None:
    """A name and a button; nothing where the catalog was never published or the role may not.

    Args:
        policy: Its rule, knob and weights are kept.
        digest: Of the eval set that `metrics` were measured on.
        key: Of the widgets, unique on the page.
    """
    pair = selectors.current()
    if pair is None or not pair[1].revision or not identity.may(Action.PIN):
        return
    with st.popover("Keep under a name", icon=":material/bookmark:", width="stretch"):
        st.text_input("Name", key=f"{key}.name", placeholder="nightly batch, cheap")
        st.button(
            "Keep", key=f"{key}.keep", width="stretch", on_click=_store,
            args=(policy, digest, metrics, key, pair[1].key, pair[1].revision),
        )  # fmt: skip


def told() -> str:
    """What was kept by the last click, once; ''."""
    return str(st.session_state.pop(_TOLD, ""))


def _store(
    policy: Policy, digest: str, metrics: Mapping[str, Any], key: str, catalog: str, revision: int
) -> None:
    name = str(st.session_state.get(f"{key}.name") or "")
    try:
        point = cache.store().points.pin(
            catalog, name, actor=identity.actor(), revision=revision, evalset_digest=digest,
            tau=policy.tau, weights=policy.weights, rule=policy.rule, value_usd=policy.value_usd,
            metrics=metrics,
        )  # fmt: skip
    except HydraError as error:
        drafts.keep_error(error)
        return
    st.session_state[_TOLD] = f"Kept as “{point.name}”; Compare offers it."
