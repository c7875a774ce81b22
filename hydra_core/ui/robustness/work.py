"""Attacks in the background: every message is scored once, then any knob is a look-up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import streamlit as st

from hydra_core.evaluation.robustness import probe
from hydra_core.evaluation.robustness.attack import Attacked, Families, other_wordings, set_messages
from hydra_core.evaluation.robustness.findings import RoutedAttacks
from hydra_core.predictor.checks.robustness import load_probes
from hydra_core.predictor.languages import detect
from hydra_core.types import Catalog
from hydra_core.ui import cache, cache_evaluate
from hydra_core.ui.access import identity
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.tasks import Task

__all__ = ["Wanted", "newest", "routed", "start"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be attacked, and with what.

    Attributes:
        entry: The eval set; None for `pasted`.
        pasted: Messages typed in.
        most: Messages drawn from the set.
        own: Further suffixes: family -> ((language, suffix), ...).
    """

    entry: SetEntry | None
    pasted: tuple[str, ...]
    most: int
    own: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What makes the result what it is."""
        named = repr((self.pasted, self.own)).encode()
        digest = "" if self.entry is None else self.entry.info.digest
        made_of = hashlib.sha256(named).hexdigest()
        return ("attack", digest, str(self.most), made_of, cache.bundle().fingerprint)

    @property
    def families(self) -> Families:
        """The families that come with the console, then the operator's."""
        return {**load_probes(), **{name: dict(suffixes) for name, suffixes in self.own}}

    def messages(self) -> tuple[list[str], list[str]]:
        """Texts and language codes.

        Raises:
            EvalSetError: The set has no texts, or is damaged.
        """
        if self.entry is None:
            return list(self.pasted), [detect(text) for text in self.pasted]
        loaded = cache.evalset(self.entry.info.path, self.entry.info.digest)
        return set_messages(loaded, self.most)


def newest(wanted: Wanted) -> Task | None:
    """The attack as it runs or ended."""
    return cache_evaluate.tasks().get(wanted.key)


def start(wanted: Wanted) -> Task:
    """Score the messages with every suffix and change, in the background.

    Raises:
        HydraError: The messages or the predictor cannot be had.
    """
    texts, languages = wanted.messages()
    wordings = {} if wanted.entry is None else other_wordings(
        cache.evalset(wanted.entry.info.path, wanted.entry.info.digest)
    )  # fmt: skip
    families, predictor = wanted.families, cache.predictor()

    def work(task: Task) -> Attacked:
        return probe.probed(predictor, texts, languages, families, task.step, wordings)

    return cache_evaluate.tasks().start(wanted.key, work, owner=identity.actor().name)


def routed(wanted: Wanted, found: Attacked, catalog: Catalog) -> RoutedAttacks:
    """The attacked messages under a catalog's pool and rule.

    Raises:
        HydraError: The outcome model cannot be had.
    """
    caps = tuple(catalog.policy.defences.score_caps.items())
    return _routed((wanted.key, catalog.digest, catalog.policy.rule, caps), found, catalog)


@st.cache_resource(max_entries=6, show_spinner="Routing the attacked messages")
def _routed(key: tuple[object, ...], _found: Attacked, _catalog: Catalog) -> RoutedAttacks:
    del key
    return probe.routed(_found, _catalog)
