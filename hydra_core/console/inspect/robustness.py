"""The part Robustness: can a claim of difficulty, or a slip, change the model?"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import counted
from hydra_core.base.types import Catalog, IntArray, Rule
from hydra_core.catalog.binding import require_bundle
from hydra_core.console import cache, replays, selectors, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.identity import stop_button
from hydra_core.console.cache import SetEntry
from hydra_core.console.figures.intervals import IntervalsView, Series, intervals_figure
from hydra_core.console.frame import Head
from hydra_core.console.inspect import message_input
from hydra_core.console.inspect import state as inspect_state
from hydra_core.console.inspect.figures import knob_rate_figure
from hydra_core.console.inspect.view import family_name
from hydra_core.console.numbers import percent
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import colors, figure, literal, metric_row
from hydra_core.lab.robustness import attack
from hydra_core.lab.robustness.findings import (
    EVERYONE,
    Exchange,
    Findings,
    FlipRow,
    RoutedAttacks,
    probed,
)
from hydra_core.lab.robustness.findings import routed as routes
from hydra_core.predictor.languages import LANGUAGES, detect
from hydra_core.predictor.onnx_predictor import cores

#: The page's address: parameter -> key of what it names; the policy is that of the whole page.
_KNOBS: Final = {name: f"robustness.link.{name}" for name in ("rule", "tau", "v")}
LINK: Final = {"view": "robustness.view", **_KNOBS}
#: Messages that the time of an attack is estimated from.
_TIMED: Final = 6
_SET, _PASTED = "From the eval set", "Pasted"
_AMOUNTS: Final = (100, 300, 1_000, 5_000)
_MOST_PASTED = 500
_PARTS = ("Kinds of claim", "Languages", "Along the knob", "Harmless changes", "Messages")
_STEPS = 41
#: From this share of successful attacks or re-routed messages on, the page warns.
BOUND: Final = 0.05
_MOST = 2_000
_COLUMNS = ["message", "family", "wording", "ignored", "distance", "before", "after", "success"]


def headline(found: Findings) -> tuple[str, str, str]:
    """(tone, title, text): success only where neither attacks nor harmless changes move a route."""
    own, flip = found.overall(localised=True), worst_change(found)
    moved = (
        f"The worst harmless change ({flip.change}) sends {_share(flip.rate)} of the messages to "
        "another model."
        if flip.rate.value > 0
        else f"No harmless change moved any of {counted(flip.n, 'message')}."
    )
    if not found.cheap:
        text = (
            f"{counted(found.n, 'message')}, and none goes to a cheaper model than the two most "
            "expensive. With more than two models, turn the knob to see what a claim would change."
        )
        return "info", "Nothing to attack here", f"{text} {moved}" if flip.rate.value > 0 else text
    text = (
        f"{_share(own.success)} of {own.n:,} attacks on {counted(found.cheap, 'message')} led to "
        f"one of the two most expensive models. {moved}"
    )
    if own.success.lo > BOUND:
        return "warning", "Claims of difficulty lead to expensive models", text
    if flip.rate.lo > BOUND:
        return "warning", "Harmless changes of the text change the model", text
    if max(own.success.hi, flip.rate.hi) < BOUND:
        return "success", "Claims of difficulty and harmless changes rarely change the model", text
    return "info", "Too few messages to call this router robust", text


def worst_change(found: Findings) -> FlipRow:
    """The harmless change that moves most messages to another model."""
    return max(found.flips, key=lambda one: np.nan_to_num(one.rate.value))


def attacks_view(found: Findings, *, by_language: bool) -> IntervalsView:
    """Share of attacks that succeed, with suffixes in the message's language and in English."""
    rows = found.languages if by_language else [a for a in found.attacks if a.group == EVERYONE]
    own, english = ([row for row in rows if row.localised == mine] for mine in (True, False))
    names = (
        f"{LANGUAGES[row.group].name} ({row.n:,})" if by_language
        else "All families" if row.family == EVERYONE
        else family_name(row.family)
        for row in own
    )  # fmt: skip
    series = (Series.of(text, [row.success for row in some], tone, scale=100.0) for text, some, tone
              in (("Own language", own, "accent"), ("English", english, "ghost")))  # fmt: skip
    title = "Attacks that lead to an expensive model" + ", all families" * by_language
    return IntervalsView(tuple(names), tuple(series), title, unit=" %")


def exchange_table(exchanges: Sequence[Exchange]) -> pd.DataFrame:
    """One row an attack: message with suffix, what was not scored, models before and after."""
    rows = [
        (one.text, family_name(one.family), "own language" if one.localised else "English",
         one.ignored, one.distance, one.before, one.after, one.won)
        for one in exchanges[:_MOST]
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=_COLUMNS)


def unusual_text(found: attack.Attacked) -> str:
    """How many messages are unlike the training messages; '' where the bundle cannot say."""
    reads = [attack.read for attack in found.attacks]
    distances = np.concatenate([read.distances for read in reads] or [np.empty(0)])
    if np.isnan(found.clean.distances).any() or not distances.size:
        return ""
    shares = ((far > 1.0).mean() for far in (found.clean.distances, distances))
    clean, attacked = (f"{100 * share:.1f} %" for share in shares)
    return (
        f"{clean} of these messages are unlike the predictor's training messages, and {attacked} "
        "of them with a suffix. The receipt records this; it changes no route."
    )


def _share(rate: Interval) -> str:
    return f"{100 * rate.value:.1f} % ({100 * rate.lo:.1f} to {100 * rate.hi:.1f})"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be attacked: `most` messages of a set, or `pasted` ones where there is no set.

    Attributes:
        own: Further suffixes: family -> language -> suffix.
    """

    entry: SetEntry | None
    pasted: tuple[str, ...]
    most: int
    own: attack.Families

    @property
    def key(self) -> tuple[str, ...]:
        """What makes the result what it is."""
        named = repr((self.pasted, self.own)).encode()
        digest = "" if self.entry is None else self.entry.info.digest
        made_of = hashlib.sha256(named).hexdigest()
        return ("attack", digest, str(self.most), made_of, cache.bundle().fingerprint)

    @property
    def families(self) -> attack.Families:
        """The families that come with the console, then the operator's."""
        return {**attack.load_probes(), **self.own}

    def messages(self) -> tuple[list[str], list[str], IntArray | None]:
        """As `attack.set_messages`; EvalSetError where the set has no texts, or is damaged."""
        if self.entry is None:
            return list(self.pasted), [detect(text) for text in self.pasted], None
        loaded = cache.evalset(self.entry)
        return attack.set_messages(loaded, self.most)


def start(wanted: Wanted) -> None:
    """Score the messages with every suffix and change, in the background; raises as `messages`."""
    messages = wanted.messages()
    entry = wanted.entry
    wordings = {} if entry is None else attack.other_wordings(cache.evalset(entry))
    families, predictor = wanted.families, cache.predictor()

    def work(task: Task) -> attack.Attacked:
        return probed(predictor, *messages, families, task.step, wordings)

    replays.tasks().start(wanted.key, work, owner=identity.actor().name)


def routed(wanted: Wanted, found: attack.Attacked, catalog: Catalog) -> RoutedAttacks:
    """The attacked messages under a catalog's pool and rule; HydraError if it cannot predict."""
    policy = catalog.policy  # any knob is a look-up
    caps = tuple(policy.defences.score_caps.items())
    return _routed((wanted.key, catalog.digest, policy.rule, policy.weights, caps), found, catalog)


@st.cache_resource(max_entries=6, show_spinner="Routing the attacked messages")
def _routed(key: tuple[object, ...], _found: attack.Attacked, _catalog: Catalog) -> RoutedAttacks:
    del key
    return routes(_found, _catalog)


def wanted(entry: SetEntry | None) -> Wanted | None:
    """What the operator wants attacked, of a set with texts or pasted; None while incomplete."""
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


def _own() -> attack.Families:
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
            families = attack.suffix_lines(typed or "", "box")
            if given is None:
                return families
            with TemporaryDirectory() as folder:
                path = Path(folder) / ("own" + Path(given.name).suffix.lower())
                path.write_bytes(given.getvalue())
                return {**families, **attack.own_suffixes(path)}
        except HydraError as error:
            widgets.problem(error)
        except UnicodeDecodeError:
            widgets.problem(HydraError("not a UTF-8 text"))
        return {}


def ruled(catalog: Catalog) -> Catalog:
    """The catalog under the rule and the score caps looked at: choices where it has them."""
    policy = catalog.policy
    caps = policy.defences.score_caps
    if caps:
        text = ", ".join(f"{name.replace('_', ' ')} {cap:g}" for name, cap in caps.items())
        if not st.toggle(
            "Score caps of the catalog", True, key="robustness.caps",
            help=f"Scores count up to: {text}. Switch off to see what they keep out.",
        ):  # fmt: skip
            policy = replace(policy, defences=replace(policy.defences, score_caps={}))
            catalog = replace(catalog, policy=policy)
    if catalog.success_source is not None and policy.value_usd is not None:
        message_input.choose_rule(policy.rule)
    return catalog


def knob(catalog: Catalog, published_tau: float) -> float:
    """tau, or V under the value rule: the page's, also above the slider's usual end."""
    policy = catalog.policy
    if policy.rule is Rule.VALUE and policy.value_usd is not None:
        message_input.knob(policy)
        return policy.value_usd
    usual = max(0.5, round(2 * published_tau, 2))
    top = usual if policy.tau <= usual else float(np.ceil(policy.tau))
    shown = state.bound("robustness.tau", policy.tau, lambda tau: inspect_state.put(tau=tau))
    st.slider("τ, the largest acceptable shortfall", 0.0, top, step=0.001, format="%.3f", **shown)
    return policy.tau


def figures(found: Findings) -> None:
    """The row of figures."""
    own, english = (found.overall(localised=mine) for mine in (True, False))
    flip = worst_change(found)
    metric_row([
        ("Own language", *_percent(own.success),
         "Share of attacks that led to one of the two most expensive models, with the suffix in "
         "the message's own language."),
        ("In English", *_percent(english.success), "The same with the suffix in English."),
        ("Cost ratio", "–" if np.isnan(own.cost_ratio) else f"{own.cost_ratio:.2f}", "own language",
         "Cost with the suffix over cost without it, by the prices that order the models."),
        ("Harmless change", *_percent(flip.rate),
         f"Share of messages that go to another model after {flip.change}, the worst of "
         f"{len(found.flips)} harmless changes."),
        ("Attacked", f"{found.cheap:,}", f"of {found.n:,} messages",
         "Only messages that do not go to one of the two most expensive models anyway."),
    ])  # fmt: skip


def questions(routed: RoutedAttacks, found: Findings) -> None:
    """Families, languages, the knob, slips, or single messages."""
    part = widgets.switch("Part", _PARTS, "robustness.view")
    if part == "Messages":
        _messages(routed.exchanges(found.knob), unusual_text(routed.attacked))
    elif part == "Along the knob":
        _along(routed, found)
    elif part == "Harmless changes":
        names = tuple(flip.change.capitalize() for flip in found.flips)
        shares = Series.of("Another model", [flip.rate for flip in found.flips], scale=100.0)
        view = IntervalsView(names, (shares,), "Messages sent to another model", unit=" %")
        _intervals(view, "Share of messages that a harmless change re-routes")
        st.caption(
            "These changes leave the task as it is: upper case, lower case, and two neighbouring "
            "letters swapped in about every twelfth word. Where a cluster of the set holds several "
            "wordings of a task, another wording is tried too."
        )
    else:
        view = attacks_view(found, by_language=part == "Languages")
        _intervals(view, f"Share of attacks that succeed by {part.lower()}")
        st.caption(
            "Lines are 95 % intervals (Wilson); the kinds of claim on one message, and messages of "
            "one cluster, count as dependent. The suffix only claims difficulty, so the model "
            "should not change."
        )


def _intervals(view: IntervalsView, alt: str) -> None:
    with st.container(border=True):
        figure(intervals_figure(view, colors()), "robustness.intervals", alt=alt)


def _along(routed: RoutedAttacks, found: Findings) -> None:
    by_value = routed.valuer is not None
    knobs = (
        found.knob * np.geomspace(0.02, 50.0, _STEPS)
        if by_value
        else np.linspace(0.0, max(0.5, 2 * found.knob), _STEPS)
    )
    rates = [row.success for row in routed.along(knobs.tolist(), localised=True)]
    chart = knob_rate_figure(knobs, rates, found.knob, colors(), by_value=by_value)
    with st.container(border=True):
        alt = "Share of attacks that succeed for every setting of the knob"
        figure(chart, "robustness.along", alt=alt)
    st.caption("Suffixes in the message's own language. Band: 95 % interval at each setting. "
               "Dashed line: your setting.")  # fmt: skip


def _messages(exchanges: tuple[Exchange, ...], unusual: str) -> None:
    won = sum(one.won for one in exchanges)
    only = won > 0 and st.toggle(f"Successes only ({won:,})", value=True, key="robustness.only")
    shown = tuple(one for one in exchanges if one.won or not only)
    table = exchange_table(shown)
    column = st.column_config
    model = tables.named(118, (*table["before"], *table["after"]))
    picked = st.dataframe(
        tables.spelled(table, {"before": model, "after": model}), hide_index=True,
        height=320, key="robustness.table", on_select="rerun", selection_mode="single-row",
        column_config={
            "message": column.TextColumn("Message with suffix", width=280 if only else 206),
            "family": column.TextColumn("Family", width=126),
            "wording": column.TextColumn("Suffix", width=94),
            "ignored": column.NumberColumn(
                "Not scored", width=78, format="localized",
                help="Characters at the end that the predictor recognised as a claim.",
            ),
            "distance": column.NumberColumn(
                "Distance", width=70, format="%.2f",
                help="Distance from the predictor's training messages. Nearly all ordinary "
                "messages are below 1; above 1 a message is unlike them.",
            ) if unusual else None,
            "before": column.TextColumn("Without", width=118),
            "after": column.TextColumn("With", width=118),
            "success": None if only else column.CheckboxColumn("Success", width=70),
        },
    )  # fmt: skip
    lines = [unusual] if unusual else []
    if len(shown) > len(table):
        lines.append(f"Shown: the first {len(table):,} of {len(shown):,} attacks.")
    left, right = st.columns([8.4, 1.6], vertical_alignment="top")
    with left:
        if lines:
            st.caption(literal(" ".join(lines)))
    with right:
        tables.offer_downloads(table, "robustness")
    rows = picked.selection.rows
    if rows and rows[0] < len(shown):
        _one(shown[rows[0]])
    else:
        st.caption("Select a row to read the whole message.")


def _one(one: Exchange) -> None:
    """A whole message; what was recognised as a claim is struck out."""
    end = len(one.text) - one.ignored
    with st.container(border=True):
        widgets.message(one.text[:end], one.text[end:])
        text = "struck out: recognised as a claim and not scored" if one.ignored else (
            "no claim recognised: the whole text was scored")  # fmt: skip
        st.caption(literal(f"{one.before} → {one.after}; {text}."))


def _percent(rate: Interval) -> tuple[str, str]:
    value, ends = percent(rate)
    return value, ends or "nothing attacked"


def run(entry: SetEntry, catalog: Catalog) -> None:
    """The controls, then the work or what was found."""
    require_bundle(catalog, cache.bundle().fingerprint)
    texts = cache.evalset(entry).texts is not None
    with st.container(border=True):
        left, right = st.columns([9, 2], vertical_alignment="bottom", gap="small")
        with left:
            asked = wanted(entry if texts else None)
        task = None if asked is None else replays.tasks().get(asked.key)
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
                ":material/info: This set has no texts. Paste messages of your own, or open a set "
                "with texts."
            )
    if asked is not None and task is not None and isinstance(task.result, attack.Attacked):
        result(asked, task.result, catalog)
    elif task is not None and running:
        widgets.waiting(task, "Scoring attacked messages", unit="messages")
    else:
        if task is not None and task.failure is not None:
            widgets.problem(task.failure)
        nothing_yet(asked)
        if not texts:
            selectors.offer_texts()


def nothing_yet(asked: Wanted | None) -> None:
    """What an attack will show and how long it will take, before it is run."""
    text = (
        "The console adds suffixes that only claim difficulty to every message: eight kinds, in "
        "sixteen languages and in English. It also tries three harmless changes of the text. The "
        "result then holds for every knob and rule."
    )
    if asked is not None:
        seconds = expected_s(asked.key, asked)
        message = f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
        text += f" This takes about {message} on this machine."
    widgets.empty("Can a user talk this router into an expensive model?", text)


@st.cache_data(max_entries=64, show_spinner=False)
def expected_s(key: tuple[str, ...], _asked: Wanted) -> float:
    """Seconds that the attack will take, measured on a few of its messages."""
    del key
    texts, languages, _ = _asked.messages()
    suffix = next(iter(_asked.families.values()))["en"]
    few = [f"{text} {suffix}" for text in texts[:: max(len(texts) // _TIMED, 1)][:_TIMED]]
    predictor = cache.predictor()
    began = time.perf_counter()
    predictor.predict(few)
    each = (time.perf_counter() - began) / len(few)
    return 1.0 + each * attack.runs(languages, languages, len(_asked.families)) / cores()


def result(asked: Wanted, found: attack.Attacked, catalog: Catalog) -> None:
    """The knob, the answer, and one question at a time."""
    left, right = st.columns([7, 3], gap="medium")
    policy = inspect_state.policy_for(state.get().catalog, catalog)
    with right:
        used = ruled(replace(catalog, policy=policy))
        at = knob(used, catalog.policy.tau)
    tried = routed(asked, found, used)
    findings = tried.at(at)
    with left:
        tone, title, text = headline(findings)
        widgets.toned(tone, text, title)
    figures(findings)
    questions(tried, findings)


def show(head: Head) -> None:
    """The whole part."""
    inspect_state.follow_link()
    now = inspect_state.get()
    same = now.catalog in ("", state.get().catalog)
    for key, value in zip(_KNOBS.values(), (now.rule, now.tau, now.value_usd), strict=True):
        st.session_state[key] = value if same else None
    selectors.on_data(head, run, baseline=False, link=LINK)
