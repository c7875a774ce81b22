"""The controls of the Robustness page: which messages, with what, at which knob."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.robustness.attack import Families
from hydra_core.evaluation.robustness.suffixes import own_suffixes, suffix_lines
from hydra_core.types import Catalog, Rule
from hydra_core.ui import widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.robustness.work import Wanted

__all__ = ["LINK", "knob", "ruled", "wanted"]

#: The page's address: parameter -> key of what it restores.
LINK: Final = {
    "part": "robustness.part",
    "rule": "robustness.rule",
    "tau": "robustness.tau",
    "v": "robustness.v",
}

_SET, _PASTED = "From the eval set", "Pasted"
_AMOUNTS: Final = (100, 300, 1_000, 5_000)
_MOST_PASTED = 500


def wanted(entry: SetEntry | None) -> Wanted | None:
    """What the operator wants attacked; None while that is not complete.

    Args:
        entry: The eval set in use; None where it has no texts.
    """
    sources = [_SET, _PASTED] if entry is not None else [_PASTED]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        source = st.segmented_control(
            "Messages", sources, default=sources[0], key="robustness.source", required=True,
            persist_state="session",
        )  # fmt: skip
        most = _AMOUNTS[0]
        if source == _SET and entry is not None:
            amounts = [n for n in _AMOUNTS if n < entry.info.n] + [entry.info.n]
            most = st.selectbox(
                "How many", amounts[:5], key="robustness.most", width=150, index=0,
                format_func=lambda n: f"all {n:,}" if n == entry.info.n else f"{n:,} at random",
            )  # fmt: skip
        own = _own()
    if source == _SET and entry is not None:
        return Wanted(entry, (), most, own)
    typed = st.text_area(
        "One message a line", key="robustness.pasted", height=120, persist_state="session",
        placeholder="Rename this variable\nWhy does this query not use its index?",
    )  # fmt: skip
    lines = tuple(dict.fromkeys(line.strip() for line in typed.splitlines() if line.strip()))
    if len(lines) > _MOST_PASTED:
        st.warning(f"{len(lines):,} messages: at most {_MOST_PASTED} here; import a set for more.")
        return None
    return Wanted(None, lines, len(lines), own) if lines else None


def _own() -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """The operator's suffixes, typed or from a file."""
    with st.popover("Suffixes of your own", icon=":material/add:"):
        typed = st.text_area(
            "One suffix a line, the same for every language", key="robustness.own",
            placeholder="This is for the board of directors.", persist_state="session",
        )  # fmt: skip
        given = st.file_uploader(
            "Or a file: .txt with one a line, or YAML `family: {en: ..., de: ...}`",
            ["txt", "yaml", "yml"], key="robustness.file",
        )  # fmt: skip
        try:
            families: dict[str, dict[str, str]] = {
                name: dict(one) for name, one in suffix_lines(typed or "", "box").items()
            }
            if given is not None:
                found = _from_file(given.name, given.getvalue())
                families |= {name: dict(one) for name, one in found.items()}
        except (HydraError, UnicodeDecodeError) as error:
            shown = error if isinstance(error, HydraError) else HydraError("not a UTF-8 text")
            widgets.problem(shown)
            return ()
    return tuple((name, tuple(one.items())) for name, one in families.items())


def _from_file(name: str, raw: bytes) -> Families:
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("own" + Path(name).suffix.lower())
        path.write_bytes(raw)
        return own_suffixes(path)


def ruled(catalog: Catalog) -> Catalog:
    """The catalog under the rule and the score caps looked at: choices where it has them."""
    policy = catalog.policy
    caps = policy.defences.score_caps
    if caps:
        told = ", ".join(f"{name.replace('_', ' ')} {cap:g}" for name, cap in caps.items())
        if not st.toggle(
            "Score caps of the catalog", True, key="robustness.caps",
            help=f"Scores count up to: {told}. Switch off to see what they keep out.",
        ):  # fmt: skip
            bare = replace(policy.defences, score_caps={})
            policy = replace(policy, defences=bare)
            catalog = replace(catalog, policy=policy)
    if catalog.outcome_model is None or policy.value_usd is None:
        return catalog
    names = {Rule.SHORTFALL: "Shortfall", Rule.VALUE: "Value"}
    st.session_state.setdefault("robustness.rule", policy.rule)
    rule = st.segmented_control(
        "Rule", list(names), format_func=names.__getitem__, required=True, key="robustness.rule",
    )  # fmt: skip
    return replace(catalog, policy=replace(policy, rule=rule or policy.rule))


def knob(catalog: Catalog) -> float:
    """tau, or V under the value rule; begins at the catalog's."""
    policy, kept = catalog.policy, st.session_state
    if policy.rule is Rule.VALUE and policy.value_usd is not None:
        kept["robustness.v"] = min(max(kept.get("robustness.v", policy.value_usd), 1e-6), 1e6)
        return float(
            st.number_input(
                "V, USD for one more resolved query", 1e-6, 1e6, format="%.4g", key="robustness.v",
            )
        )  # fmt: skip
    top = max(0.5, round(2 * policy.tau, 2))
    kept["robustness.tau"] = min(kept.get("robustness.tau", policy.tau), top)
    return float(
        st.slider(
            "τ, the largest acceptable shortfall", 0.0, top, step=0.005, format="%.3f",
            key="robustness.tau",
        )
    )  # fmt: skip
