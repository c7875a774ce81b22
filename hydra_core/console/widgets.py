"""Pieces that several pages repeat: header, badges, intervals, verdict, problems."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hydra_core.base.errors import HydraError, ProblemsError
from hydra_core.console import cache
from hydra_core.console.demo import session
from hydra_core.console.figures.intervals import IntervalsView, intervals_figure
from hydra_core.console.figures.theme import DARK, LIGHT, Palette, palette
from hydra_core.console.frame import SETS, Place, link
from hydra_core.console.inspect.view_words import block, escaped
from hydra_core.console.tasks import Task
from hydra_core.console.view_result import TONES, tiles
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.metrics import PolicyMetrics
from hydra_core.replay.pricing import RECORDED_COSTS
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import Verdict

_Option = TypeVar("_Option")
_PAINT_S = 0.03
#: Tiles side by side whose labels are whole at 1280 pixels.
_MOST_IN_A_ROW = 5
#: Where an error of a callback waits for the next run.
_ERROR = "callback.error"
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])")
_ADDRESS = re.compile(r"https?(?=:)|www(?=\.)|@(?=\w)", re.IGNORECASE)
_ON_ACCENT = "[data-testid*=-primary]:enabled, [data-testid=stMultiSelect] [data-tag] *"
_CODE = "[data-testid=stCode] .token.token"
_ASIDE = f"{_CODE}:is(.comment, .unchanged)"
_NAMED = f"{_CODE}:is(.key, .property, .function, .keyword, .inserted)"
_IN_COLUMN = "[data-testid=stColumn]:has(> [data-testid=stVerticalBlock] >"
_WHOLE = f"""{_IN_COLUMN} :only-child > [data-testid=stMetric]),
{_IN_COLUMN} :only-child > [data-testid=stButtonGroup]),
{_IN_COLUMN} [data-testid=stLayoutWrapper] h1)"""
_LEGIBLE = f"""<style>
body :is({_ON_ACCENT}) {{color: PAGE}}
.stApp :is({_ON_ACCENT}) {{color: light-dark({LIGHT.surface}, {DARK.surface})}}
body [data-testid=stMultiSelect] button {{min-width: 24px; min-height: 24px}}
body {_CODE} {{color: inherit}}
body textarea {{unicode-bidi: plaintext}}
.stApp {_ASIDE} {{color: light-dark({LIGHT.muted}, {DARK.muted})}}
.stApp {_NAMED} {{color: light-dark({LIGHT.accent}, {DARK.accent})}}
.stApp [data-testid=stButton] .stMarkdownEllipsis * {{white-space: normal}}
@media (min-width: 641px) {{
  {_WHOLE} {{min-width: fit-content}}
  [data-testid=stColumn]:has([data-testid=stPlotlyChart]) {{min-width: min(21rem, 100%)}}
}}
</style>"""
_TONES = {
    "success": (st.success, "check_circle"),
    "info": (st.info, "balance"),
    "warning": (st.warning, "warning"),
    "error": (st.error, "error"),
}


def literal(text: str) -> str:
    """Text from outside as Markdown that shows exactly that text: no markup, maths, icons, links.

    Web and e-mail addresses would be made links after the escapes are gone: an invisible joiner
    parts them.
    """
    return _MARKUP.sub(r"\\\1", _ADDRESS.sub("\\g<0>\u2060", text.replace("\n", " ")))


def message(text: str, struck: str = "") -> None:
    """A message as it stands, from right to left where it is so written; its end may be struck."""
    end = f'<s style="color:{colors().muted}">{escaped(struck)}</s>' if struck else ""
    st.html(block(escaped(text) + end))


def colors() -> Palette:
    """The palette of the theme the operator sees, with one colour a model on every page."""
    return replace(palette(st.context.theme.type), order=_model_order(str(session.folder())))


@st.cache_data(ttl=5, show_spinner=False)
def _model_order(workspace: str) -> tuple[str, ...]:
    """Every model known, as the catalogs list them: one more with the same models changes none."""
    del workspace
    known = [entry.catalog for entry in cache.catalogs() if entry.catalog is not None]
    return tuple(dict.fromkeys(model.id for catalog in known for model in catalog.models))


def legible() -> None:
    """What the theme cannot say and WCAG 2.2 AA asks: dark text on a bright accent, larger crosses,
    code in colours that can be read; and typed Arabic or Hebrew from right to left.

    Where a row is too narrow for its tiles, its parts or its plots, the next one goes below: their
    text would be cut off. From 640 pixels down Streamlit itself puts columns below each other.

    Streamlit writes white on the accent in both themes. No theme has an accent that carries white
    and is legible itself on a dark page (4.5:1 each), so the text takes the page's own colour.
    Popovers lie outside the app's element, which alone knows its scheme: theirs is written in.
    """
    st.html(_LEGIBLE.replace("PAGE", colors().surface))


def uploaded_text(upload: UploadedFile) -> str:
    """An uploaded file as text; HydraError names the first line that is not UTF-8."""
    data = upload.getvalue()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise HydraError(
            f"Line {line} of {upload.name} is not UTF-8 text. Save the file as UTF-8."
        ) from fault


def commands(text: str) -> None:
    """Command lines to copy, whole lines in sight."""
    st.code(text, language="bash", wrap_lines=True)


def figure(chart: go.Figure, key: str, *, alt: str, **selection: object) -> None:
    """Draw a figure full width, without a toolbar."""
    st.plotly_chart(
        chart, theme=None, key=key, alt=alt, config={"displayModeBar": False}, **selection
    )  # type: ignore[call-overload]


def intervals(view: IntervalsView, key: str, alt: str) -> None:
    """Draw values with their intervals in a box."""
    with st.container(border=True):
        figure(intervals_figure(view, colors()), key, alt=alt)


def paint() -> None:
    """Let the browser show what it has got before a plot comes, which keeps it busy.

    It draws together what comes within 10 ms. Only where a part of a page runs again, as after the
    release of a knob: a page that is opened is looked at when it is whole.
    """
    context = get_script_run_ctx()
    if context is not None and context.fragment_ids_this_run:
        time.sleep(_PAINT_S)


def bullets(lines: Sequence[object], most: int = 20) -> str:
    """A list in Markdown of so many of the lines as they stand, and how many more there are."""
    shown = [f"- {literal(str(one))}" for one in lines[:most]]
    return "\n".join([*shown, *[f"- and {len(lines) - most} more"] * (len(lines) > most)])


def problem(error: HydraError | OSError) -> None:
    """Show an error as a list of what to repair."""
    if isinstance(error, ProblemsError) and len(error.problems) > 1:
        lines = bullets(error.problems)
        st.error(lines, title=literal(error.source), icon=":material/error:")
    else:
        st.error(literal(str(error)), icon=":material/error:")


def keep_error(error: HydraError) -> None:
    """Remember what went wrong in a callback."""
    st.session_state[_ERROR] = error


def show_error() -> None:
    """Say what went wrong in a callback, once."""
    error: HydraError | None = st.session_state.pop(_ERROR, None)
    if error is not None:
        problem(error)


def later(step: Callable[[], object]) -> None:
    """Do something in a callback; why it cannot be done is said by the next run's `show_error`."""
    try:
        step()
    except HydraError as error:
        keep_error(error)


def synthetic_badge(synthetic: bool = True) -> None:
    """Say that outcomes were simulated, where they were."""
    if synthetic:
        st.badge(
            "Synthetic data",
            icon=":material/science:",
            color="orange",
            help="Outcomes and costs of this eval set were simulated; they were not measured.",
        )


def notes(sweep: Sweep, further: Sequence[str] = ()) -> None:
    """What the replay left out, and costs that nobody was billed; nothing when there is nothing."""
    lines = [*sweep.data.notes, *further]
    if sweep.evalset.cost_estimated:
        lines.append("Costs are estimated from prices, not billed.")
    if lines:
        st.caption(":material/info: " + " ".join(literal(note) for note in lines))


def metric_row(
    entries: Sequence[tuple[str, str, str, str]], widths: Sequence[float] | None = None
) -> None:
    """Figures side by side: (label, value, what stands below it or '', help) each.

    More than five would cut off their labels at 1280 pixels: they stand in two rows.
    """
    rows = 1 if len(entries) <= _MOST_IN_A_ROW else 2
    wide = widths or -(-len(entries) // rows)
    places = [place for _ in range(rows) for place in st.columns(wide)]
    for column, (label, value, below, text) in zip(places, entries, strict=False):
        metric(column, label, value, below, text)


def metric(
    place: DeltaGenerator, label: str, value: str, below: str = "", text: str = "", tone: str = ""
) -> None:
    """A figure in a box; what stands below it takes a colour where it has a tone."""
    color: Any = tone or "off"
    place.metric(
        label, literal(value), delta=literal(below) or None, delta_color=color,
        delta_arrow="off", help=text or None, border=True,
    )  # fmt: skip


def kpis(evaluation: Evaluation) -> None:
    """The row of figures at the operating point, each with its 95 % interval."""
    metric_row(
        [(one.label, one.value, one.interval, literal(one.help)) for one in tiles(evaluation)]
    )
    cautions(evaluation.router, evaluation.sweep.data)


def cautions(metrics: PolicyMetrics, data: ReplayData) -> None:
    """What the figures of a policy leave open: its costs as recorded, its quality unmeasured."""
    recorded_costs(data)
    unknown_quality(metrics, data)


def recorded_costs(data: ReplayData) -> None:
    """Say that costs do not follow an edited price, where they do not."""
    if data.recorded:
        which = ", ".join(data.recorded) if len(data.recorded) < len(data.pool.ids) else ""
        st.badge(
            RECORDED_COSTS + (f": {literal(which)}" if which else ""),
            icon=":material/price_change:",
            color="orange",
            help="The eval set holds neither tokens nor the prices at recording, so a price "
            "that you edit does not move these costs.",
        )


def unknown_quality(metrics: PolicyMetrics, data: ReplayData) -> None:
    """Say how much of the traffic goes to models without outcomes, and what that leaves open."""
    if not metrics.unknown:
        return
    gets = [m for m in data.unmeasured if metrics.shares.get(m)]
    least = 100 * metrics.quality.value
    st.caption(
        f":material/help: {100 * metrics.unknown:.1f} % of the queries go to "
        f"{literal(', '.join(gets))}, without outcomes in this set: unknown whether they are "
        f"resolved. Quality lies between {least:.1f} and {least + 100 * metrics.unknown:.1f} %; "
        "the cost of that share is estimated from prices."
    )


def verdict_box(verdict: Verdict, *, details: bool = True) -> None:
    """The result against the best fixed mix at the same cost; what it rests on behind Details."""
    tone, icon = TONES[verdict.label]
    toned(tone, verdict.text, verdict.title, icon)
    if details and verdict.details:
        with st.popover("Details", type="tertiary", icon=":material/info:"):
            st.markdown(bullets(verdict.details))


def toned(tone: str, text: str, title: str = "", icon: str = "") -> None:
    """An answer in a box of its tone.

    Args:
        tone: success, info, warning or error.
        icon: Name of a Material symbol; empty for the tone's own.
    """
    box, own = _TONES[tone]
    box(literal(text), title=literal(title) or None, icon=f":material/{icon or own}:")


def empty(title: str, text: str, links: Sequence[tuple[Place, str]] = ()) -> None:
    """An empty state: what is missing and where to go next."""
    with st.container(border=True, horizontal_alignment="center", gap="small"):
        st.space("small")
        st.markdown(f"#### {title}", width="content")
        st.markdown(text, width="content", text_alignment="center")
        with st.container(horizontal=True, horizontal_alignment="center"):
            for place, label in links:
                link(place, label)
        st.space("small")


@st.fragment(run_every=0.7)
def waiting(task: Task, doing: str, *, unit: str = "steps") -> None:
    """How far work in the background is; the page runs once more when it ends.

    Args:
        doing: What it does, where the task names no stage of its own.
        unit: What its steps are.
    """
    if not task.running:
        st.rerun()
    left = task.left_s
    counted = f"{task.done:,} of {task.total:,} {unit}"
    so_far = counted if task.total else f"{task.seconds:.0f} s so far"
    rest = "" if left is None else f", about {max(left, 1):.0f} s left"
    now = "Stopping after this step" if task.cancel.is_set() else task.stage or doing
    share = min(task.done / task.total, 1.0) if task.total else 0.0
    st.progress(share, text=literal(f"{now}: {so_far}{rest}"))
    st.caption("You may leave this page; the work goes on and its result waits here.")


def no_predictor() -> None:
    """An empty state for pages that score messages."""
    empty(
        "No predictor",
        "This page scores messages with the predictor bundle, and it cannot be opened. Install "
        "the console again, or restore its bundle.",
    )


def no_evalset() -> None:
    """An empty state for what is replayed on a set that fits the catalog."""
    empty(
        "Nothing to replay on",
        "No eval set is scored by this catalog's predictor and shares models with it.",
        [(SETS, "Import or score an eval set")],
    )


def switch(
    label: str,
    options: Collection[_Option],
    key: str,
    format_func: Callable[[Any], str] = str,
    place: DeltaGenerator | None = None,
) -> _Option:
    """A control without its label; the first option where the session has none of them."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = next(iter(options))
    chosen = (place or st).segmented_control(
        label, list(options), format_func=format_func, key=key, required=True,
        persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    return next(iter(options)) if chosen is None else chosen


def done(step: Callable[[], object]) -> bool:
    """Do something, or show why it cannot be done."""
    try:
        step()
    except HydraError as error:
        problem(error)
        return False
    return True


def forget(*keys: str) -> None:
    """Drop remembered values that no longer apply."""
    for key in keys:
        st.session_state.pop(key, None)
