"""The panels of the Robustness page: the answer, then one question at a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.types import Catalog, Rule
from hydra_core.catalog.binding import require_bundle
from hydra_core.console import cache, replays, selectors, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.stopping import stop_button
from hydra_core.console.cache import SetEntry
from hydra_core.console.figures.intervals import IntervalsView, intervals_figure
from hydra_core.console.frame import Head
from hydra_core.console.inspect import view_robustness as views
from hydra_core.console.inspect.figure_knob_rate import knob_rate_figure
from hydra_core.console.numbers import percent
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import colors, figure, literal, metric_row
from hydra_core.lab.robustness import probe
from hydra_core.lab.robustness.attack import Attacked, Families, other_wordings, set_messages
from hydra_core.lab.robustness.findings import Exchange, Findings, RoutedAttacks
from hydra_core.lab.robustness.harmless import load_probes
from hydra_core.lab.robustness.probe import own_suffixes, suffix_lines
from hydra_core.predictor.languages import detect


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
    return replays.tasks().get(wanted.key)


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

    return replays.tasks().start(wanted.key, work, owner=identity.actor().name)


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


#: The page's address: parameter -> key of what it restores.
LINK: Final = {
    "view": "robustness.view",
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


_PARTS = ("Families", "Languages", "Along the knob", "Slips", "Messages")
_STEPS = 41


def answer(found: Findings) -> None:
    """The answer in a sentence."""
    tone, title, text = views.headline(found)
    widgets.toned(tone, text, title)


def figures(found: Findings) -> None:
    """The row of figures."""
    own, english = (found.overall(localised=mine) for mine in (True, False))
    flip = max(found.flips, key=lambda one: np.nan_to_num(one.rate.value))
    entries = [
        ("Own language", *_percent(own.success),
         "Attacks whose suffix, in the message's own language, moved it to one of the two dearest "
         "models."),
        ("In English", *_percent(english.success), "The same with the suffix in English."),
        ("Cost ratio", _ratio(own.cost_ratio), "own language",
         "Cost of the attacked routes over that of the clean ones, by what orders the models."),
        ("Harmless change", *_percent(flip.rate),
         f"Messages that go to another model: {flip.change}, the worst of "
         f"{len(found.flips)} changes."),
        ("Attacked", f"{found.cheap:,}", f"of {found.n:,} messages",
         "Only messages that are routed below the two dearest models as they are."),
    ]  # fmt: skip
    metric_row(entries)


def questions(routed: RoutedAttacks, found: Findings) -> None:
    """Families, languages, the knob, slips, or single messages."""
    if st.session_state.get("robustness.view") not in _PARTS:
        st.session_state["robustness.view"] = _PARTS[0]
    part = st.segmented_control(
        "Part", _PARTS, key="robustness.view", required=True,
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if part == "Messages":
        _messages(routed.exchanges(found.knob), views.unusual_text(routed.attacked))
    elif part == "Along the knob":
        _along(routed, found)
    elif part == "Slips":
        _intervals(views.slips_view(found), "Share of messages that a harmless change re-routes")
        st.caption(
            "Upper and lower case, and two neighbouring letters swapped in about every twelfth "
            "word, leave the task as it is. So does another wording, where the set holds several "
            "of a task (its clusters): in the same language if there is one, else a translation."
        )
    else:
        view = views.languages_view(found) if part == "Languages" else views.families_view(found)
        _intervals(view, f"Share of attacks that succeed by {str(part).lower()}")
        st.caption(
            "Lines are 95 % intervals (Wilson). The suffix claims difficulty and leaves the task "
            "as it is: a route should not change."
        )


def _intervals(view: IntervalsView, alt: str) -> None:
    with st.container(border=True):
        figure(intervals_figure(view, colors()), "robustness.intervals", alt=alt)


def _along(routed: RoutedAttacks, found: Findings) -> None:
    by_value = routed.valuer is not None
    if by_value:
        knobs = (found.knob * np.geomspace(0.02, 50.0, _STEPS)).tolist()
    else:
        knobs = np.linspace(0.0, max(0.5, 2 * found.knob), _STEPS).tolist()
    rows = routed.along(knobs, localised=True)
    view = views.knob_view(knobs, rows, found.knob, by_value=by_value)
    with st.container(border=True):
        figure(
            knob_rate_figure(view, colors()), "robustness.along",
            alt="Share of attacks that succeed for every setting of the knob",
        )  # fmt: skip
    st.caption("Suffixes in the message's own language; the band is the 95 % interval at each "
               "setting, the dashed line your setting.")  # fmt: skip


def _messages(exchanges: tuple[Exchange, ...], unusual: str) -> None:
    won = sum(one.won for one in exchanges)
    only = won > 0 and st.toggle(f"Successes only ({won:,})", value=True, key="robustness.only")
    shown = tuple(one for one in exchanges if one.won or not only)
    table = views.exchange_table(shown)
    column = st.column_config
    picked = st.dataframe(
        table, hide_index=True, height=320, key="robustness.table", on_select="rerun",
        selection_mode="single-row",
        column_config={
            "message": column.TextColumn("Message with suffix", width=280 if only else 206),
            "family": column.TextColumn("Family", width=126),
            "wording": column.TextColumn("Suffix", width=94),
            "ignored": column.NumberColumn(
                "Not scored", width=78, format="localized",
                help="Characters at the end that the predictor took for a claim of difficulty.",
            ),
            "distance": column.NumberColumn(
                "Distance", width=70, format="%.2f",
                help="From the messages that the predictor was trained on. Nearly all ordinary "
                "messages stay below 1; above it a message is unlike them.",
            ) if unusual else None,
            "before": column.TextColumn("Without", width=118),
            "after": column.TextColumn("With", width=118),
            "success": None if only else column.CheckboxColumn("Success", width=70),
        },
    )  # fmt: skip
    told = [unusual] if unusual else []
    if len(shown) > len(table):
        told.append(f"The first {len(table):,} of {len(shown):,} attacks, successes first.")
    left, right = st.columns([8.4, 1.6], vertical_alignment="top")
    with left:
        if told:
            st.caption(literal(" ".join(told)))
    with right:
        tables.take_along(table, "robustness")
    rows = picked.selection.rows
    if rows and rows[0] < len(shown):
        _one(shown[rows[0]])
    else:
        st.caption("Select a row to read the whole message and what was not scored of it.")


def _one(one: Exchange) -> None:
    """A whole message; what was taken for a claim is struck out."""
    end = len(one.text) - one.ignored
    with st.container(border=True):
        widgets.message(one.text[:end], one.text[end:])
        told = "struck out: taken for a claim and not scored" if one.ignored else (
            "nothing was taken for a claim: the whole text was scored")  # fmt: skip
        st.caption(literal(f"{one.before} → {one.after}; {told}."))


def _percent(rate: Interval) -> tuple[str, str]:
    value, ends = percent(rate)
    return value, ends or "nothing attacked"


def _ratio(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def run(entry: SetEntry, catalog: Catalog) -> None:
    """The controls, then the work or what was found."""
    require_bundle(catalog, cache.bundle().fingerprint)
    texts = cache.evalset(entry.info.path, entry.info.digest).texts is not None
    with st.container(border=True):
        left, right = st.columns([9, 2], vertical_alignment="bottom", gap="small")
        with left:
            asked = wanted(entry if texts else None)
        task = None if asked is None else newest(asked)
        running = task is not None and task.running
        with right:
            if task is not None and running:
                stop_button(task, "robustness.stop")
            elif st.button(
                "Attack", type="primary", icon=":material/gpp_maybe:", key="robustness.start",
                width="stretch",
                disabled=asked is None or (task is not None and task.result is not None),
            ) and asked is not None:  # fmt: skip
                start(asked)
                st.rerun()
        if not texts:
            st.caption(
                ":material/info: This set has no texts: paste messages of your own, or open a set "
                "with texts below."
            )
    if asked is not None and task is not None and isinstance(task.result, Attacked):
        result(asked, task.result, catalog)
    elif task is not None and running:
        widgets.waiting(task, "Scoring attacked messages", unit="messages")
    else:
        if task is not None and task.failure is not None:
            widgets.problem(task.failure)
        nothing_yet()
        if not texts:
            selectors.offer_texts()


def nothing_yet() -> None:
    """What an attack will show, before it was run."""
    widgets.empty(
        "Can a user talk this router into a dearer model?",
        "Eight families of suffixes that only claim difficulty, in sixteen languages and in "
        "English, and three harmless changes of the text are tried on every message. Scored once "
        "(a hundred messages take about ten seconds), the result is shown for every knob and rule.",
    )


def result(asked: Wanted, found: Attacked, catalog: Catalog) -> None:
    """The knob, the answer, and one question at a time."""
    left, right = st.columns([7, 3], gap="medium")
    with right:
        used = ruled(catalog)
        at = knob(used)
    tried = routed(asked, found, used)
    findings = tried.at(at)
    with left:
        answer(findings)
    figures(findings)
    questions(tried, findings)


def show(head: Head) -> None:
    """The part Robustness: can a claim of difficulty, or a slip, buy a dearer model?"""
    selectors.on_data(head, run, baseline=False, link=LINK)
