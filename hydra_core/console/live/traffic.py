"""Live traffic as it is: mix over time, cost and feedback; and how clients send theirs here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from shlex import quote as quote_word
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.spelling import counted, usd
from hydra_core.base.types import Catalog
from hydra_core.catalog.profiles import pool
from hydra_core.console import cache, tables, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.demo import session
from hydra_core.console.figures.shares import timeline_figure
from hydra_core.console.live import cache as cache_live
from hydra_core.console.live import view_traffic as views
from hydra_core.console.live.cache import LogKey
from hydra_core.console.numbers import per_resolved_text
from hydra_core.console.widgets import literal, metric_row
from hydra_core.live.canary import CANARY
from hydra_core.live.traffic import Traffic, against, calibration, cost_per_resolved, ends, feedback
from hydra_core.routing.gates import SENTENCES, Gate

_WINDOWS = {"Last hour": 3600, "Last day": 86_400, "Last 7 days": 7 * 86_400, "All": 0}
_HOW = """\
Live reads the decision log that `serve` writes. Start `serve` in the folder of this console:

```
hydra-router serve --catalog {catalog} --upstreams upstreams.yaml --log {log}
```

Without `--upstreams` it only decides, which already shows the mix. For a log in another folder, set
`HYDRA_LOG` when you start the console."""


@dataclass(frozen=True, slots=True, eq=False)
class LogView:
    """A log as it is on screen; prices, bands and order of the models are the catalog's."""

    key: LogKey
    traffic: Traffic
    catalog: Catalog


def choose_log(*, timed: bool = True) -> tuple[Path, int] | None:
    """Draw the selectors of log and, where it is `timed`, time; None where there is no log."""
    folders = {str(path): path for path in cache_live.folders()}
    if not folders:
        return None
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom"):
        name = st.selectbox(
            "Decision log", list(folders), key="live.log", width=260, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        if not timed:
            return folders[name], 0
        window = st.selectbox(
            "Time", list(_WINDOWS), key="live.time", width=140, bind="query-params",
            label_visibility="collapsed", index=1,
        )  # fmt: skip
    return folders[name], _WINDOWS[window]


def log_view(folder: Path, window_s: int) -> LogView | None:
    """The log as it is now; None after saying what is missing. LogError where it cannot be read."""
    key = cache_live.key_of(folder, window_s, datetime.now(UTC))
    found = cache_live.traffic(key)
    if not len(found):
        told = literal(" ".join([*views.notes(found), "Choose a longer time, or:"]))
        teach(f"No decisions in {folder.name}/ in this time", f"{told} {_HOW}")
        return None
    _, entry = decided_last(found)
    if entry is None or entry.catalog is None:
        st.warning(
            "This console has no valid catalog. Make or import one: prices and score bands come "
            "from it."
        )
        return None
    return LogView(key, found, entry.catalog)


def decided_last(found: Traffic) -> tuple[pd.Series, CatalogEntry | None]:
    """The newest decision and the console's catalog in use: the same text, the same name, any.

    A canary is on trial; the main revision is the one in use.
    """
    main = found.rows[found.rows["arm"] != CANARY]
    last = (main if len(main) else found.rows).iloc[-1]
    wanted = last["catalog_digest"], last["revision"], last["catalog"], last["predictor"]

    def alike(entry: CatalogEntry) -> list[bool]:
        one = entry.catalog
        number = str(entry.revision or "")
        given = (one.digest, number, one.name, one.predictor_fingerprint) if one else ()
        return [mine == theirs for mine, theirs in zip(given, wanted, strict=False)]

    entry = max((one for one in cache.catalogs() if one.catalog), key=alike, default=None)
    return last, entry


def by_team(look: LogView) -> LogView:
    """The log of one team alone, where the log has several and one is chosen."""
    names = views.team_names(look.traffic)
    if len(names) < 2:
        return look
    chosen = st.selectbox(
        "Team", ["All teams", *names], key="live.team", width=260, bind="query-params",
        label_visibility="collapsed", format_func=lambda name: name or "No team",
    )  # fmt: skip
    if chosen not in names:
        return look
    key = replace(look.key, team=chosen)
    return replace(look, key=key, traffic=cache_live.traffic(key))


def teams(look: LogView) -> None:
    """What every team asked and paid, with its budget."""
    frame = views.team_frame(look.traffic, look.catalog)
    if not len(frame):
        st.info("No request of a team in this time. A token carries the team:")
        widgets.commands("hydra-router token --name ci --role editor --team build")
        return
    column = st.column_config
    tables.kept(
        frame, "live.teams", dict.fromkeys(("cost_usd", "per_resolved_usd"), usd), placeholder="–",
        column_config={
            "team": column.TextColumn("Team", width=160),
            "callers": column.NumberColumn("Callers"),
            "decisions": column.NumberColumn("Decisions", format="localized"),
            "failed": column.NumberColumn("Failed", format="%.1f %%"),
            "cost_usd": column.NumberColumn("Total cost"),
            "per_resolved_usd": column.NumberColumn("Cost per resolved"),
            "budget": column.TextColumn("Budget"),
        },
    )  # fmt: skip
    st.caption("Cost is that of the chosen time; the service's own ledger decides on budgets.")


def teach(title: str = "No decision log yet", text: str = _HOW) -> None:
    """The empty state: how traffic comes here."""
    own = cache.own_catalogs()
    name = own[0].key.removeprefix("my/") if own else "mine"
    catalog = f"store:{name}" if not own or own[0].revision else name
    folder = session.folder().resolve() / "log"
    inside = folder.is_relative_to(Path.cwd())
    log = quote_word(str(folder.relative_to(Path.cwd()) if inside else folder))
    with st.container(border=True):
        st.markdown(f"#### {widgets.literal(title)}")
        st.markdown(text.replace("{catalog}", quote_word(catalog)).replace("{log}", log))


def figures(look: LogView) -> None:
    """The row of figures."""
    metric_row(views.head(look.traffic, datetime.now(UTC)))
    if agents := views.agents_text(look.traffic):
        st.caption(f":material/smart_toy: {agents}")
    if text := views.notes(look.traffic):
        st.caption(f":material/info: {literal(' '.join(text))}")


def traffic(look: LogView) -> None:
    """Decisions over time by model or reason, and the models."""
    found, box = look.traffic, st.container(border=True)
    by = widgets.switch("By", ("Model", "Reason"), "live.by", place=box)
    if by == "Reason":
        view = views.timeline_view(found, views.reasons(found), ())
    else:
        view = views.timeline_view(found, list(found.models), in_cost_order(look.catalog))
    with box:
        widgets.figure(
            timeline_figure(view, widgets.colors()),
            "live.timeline",
            alt=f"Decisions over time by {by.lower()}",
        )
    column = st.column_config
    tables.kept(
        views.model_frame(found),
        "live.models",
        {"cost_usd": usd},
        placeholder="–",
        column_config={
            "model": column.TextColumn("Model", width=220),
            "share": column.ProgressColumn(
                "Share", min_value=0, max_value=100, format="%.1f %%", width=160
            ),
            "decisions": column.NumberColumn("Decisions", format="localized"),
            "failed": column.NumberColumn("Failed", format="%.1f %%"),
            "cost_usd": column.NumberColumn("Total cost"),
            "latency_ms": column.NumberColumn("Latency, ms", format="%.0f", help="Median"),
        },
    )


def cost(look: LogView) -> None:
    """Compare the bill with one model for everything."""
    found, catalog = look.traffic, look.catalog
    cheap, strong = ends(catalog, date.today())
    served = list(found.models)
    compared = []
    for model, kind in ((strong, "always-strong"), (cheap, "always-cheap")):
        one = against(found, catalog, served, [model] * len(found), model)
        if one is not None:
            compared.append((kind, model, *views.cost_text(one, kind)))
    if not compared:
        st.info(
            "No answer with tokens yet. Start serve with --upstreams, or publish a catalog with "
            "the models that were served."
        )
        return
    for place, (kind, model, value, text) in zip(st.columns(2), compared, strict=True):
        with place.container(border=True):
            st.markdown(f"Against {kind}, **{literal(model)}**")
            st.markdown(f"### {literal(value)}")
            st.caption(literal(text))
    st.caption(
        f":material/info: Both sides at today's prices of {literal(catalog.name)}, on the tokens "
        "that upstreams counted. Another model would have written longer or shorter answers. "
        "Below 0 the router costs less. Interval: 95 %, by conversation."
    )


def _calibrated(look: LogView) -> None:
    """Predicted against achieved success by model, where the value rule predicted it."""
    found = calibration(look.traffic)
    if not found:
        return
    widgets.toned(*views.calibration_text(found))
    column = st.column_config
    rows = [
        (one.model, one.rated, 100 * one.predicted, 100 * one.achieved,
         one.difference.scaled(100.0).text("pp"))
        for one in found
    ]  # fmt: skip
    tables.kept(
        rows, "live.calibration",
        columns={
            "model": column.TextColumn("Model", width=220),
            "rated": column.NumberColumn("Rated", format="localized"),
            "predicted": column.NumberColumn("Predicted", format="%.1f %%"),
            "achieved": column.NumberColumn("Achieved", format="%.1f %%"),
            "difference": column.TextColumn("Achieved − predicted", width=200),
        },
    )  # fmt: skip


def rated(look: LogView) -> None:
    """Show feedback by model."""
    found = feedback(look.traffic)
    count = sum(one.rated for one in found)
    if not found:
        st.info(
            "No feedback in this time. Send it with the decision's id, which is in the header "
            "x-hydra-decision-id:"
        )
        widgets.commands(
            "curl http://127.0.0.1:8600/v1/outcomes -d "
            '\'{"decision_id": "...", "quality": 1.0, "source": "thumbs"}\''
        )
        return
    widgets.intervals(
        views.feedback_view(found), "live.feedback", "Mean feedback by model with its 95 % interval"
    )
    _calibrated(look)
    each = cost_per_resolved(look.traffic)
    if each is not None:
        st.markdown(
            literal(f"{per_resolved_text(each[0])}, on {each[1]:,} rated answers with a cost.")
        )
    orphans = look.traffic.orphans
    lost = f" {counted(orphans, 'rating')} of decisions outside this time." if orphans else ""
    st.caption(
        f":material/info: {count:,} of {len(look.traffic):,} decisions were rated.{lost} "
        "Do not compare models with this: raters are not random, and models get different requests."
    )


def in_cost_order(catalog: Catalog) -> tuple[str, ...]:
    """The routable models, cheapest first."""
    routable = pool(catalog, today=date.today())
    return tuple(routable.ids[i] for i in np.argsort(routable.cost, kind="stable"))


#: Where `serve` listens unless it is told otherwise.
ADDRESS: Final = "http://127.0.0.1:8600"
_ASKED: Final = "Fix the race in the reconnect code"


def connect() -> None:
    """Draw the forms, the address, and how to ask in the chosen form."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        names = list(ways(ADDRESS, _two_models()))
        name = st.segmented_control(
            "Form", names, default=names[0], key="connect.form", required=True,
            label_visibility="collapsed", persist_state="session", bind="query-params",
        )  # fmt: skip
        address = st.text_input(
            "Address of serve", ADDRESS, key="connect.address", width=260, max_chars=200,
            label_visibility="collapsed", persist_state="session",
        )  # fmt: skip
    known = ways(address or ADDRESS, _two_models())
    way = known[name or names[0]]
    st.markdown(f"**`POST {way.path}`** · {way.note}")
    st.markdown(f":material/dns: {upstream_note(way)}")
    widgets.commands(way.curl)
    st.markdown(f"With the official client (`pip install {way.package}`):")
    st.code(way.python, language="python", wrap_lines=True)
    routed = (
        "`model: auto` routes; a model's own name asks that model alone. " if way.speaks else ""
    )
    st.markdown(f"{routed}Where `serve` has `--tokens`, the client's key is a token of HyDRA.")


def _two_models() -> tuple[str, str]:
    """The cheapest and the dearest model of the operator's first catalog, else of the first."""
    every = [entry.catalog for entry in (*cache.own_catalogs(), *cache.catalogs())]
    models = next((one.models for one in every if one is not None and len(one.models) > 1), ())
    pool = [model for model in models if model.status.in_pool]
    ranked = sorted(pool, key=lambda model: model.price.blended(3.0))
    return (ranked[0].id, ranked[-1].id) if len(ranked) > 1 else ("model-a", "model-b")


@dataclass(frozen=True, slots=True)
class Way:
    """One address of the router and how to use it.

    Attributes:
        path: Below the address of `serve`.
        note: What it is for, and what it needs.
        speaks: What the upstreams must speak, as `upstreams.yaml` says it; '' where none is asked.
        curl: A command that is answered as it stands.
        python: The same by the official client.
        package: What to install for it.
    """

    path: str
    note: str
    speaks: str
    curl: str
    python: str
    package: str


def ways(address: str, catalog_models: tuple[str, ...]) -> dict[str, Way]:
    """The router's addresses by the name of their form.

    Args:
        address: Of `serve`, such as `ADDRESS`.
        catalog_models: Two models of the catalog, for a choice between them.
    """
    root = address.strip().rstrip("/")
    one, two = catalog_models
    openai = f"""from openai import OpenAI

client = OpenAI(base_url="{root}/v1", api_key="token of HyDRA")"""
    said = f'[{{"role": "user", "content": "{_ASKED}"}}]'
    nothing = "Nothing is passed on and nothing is spent."
    known = {
        "Chat Completions": (
            "/v1/chat/completions", "For the `openai` client and most others.", "chat",
            f'{{"model": "auto",\n  "messages": {said}}}',
            f"""{openai}
answer = client.chat.completions.create(
    model="auto", messages={said}
)
print(answer.choices[0].message.content)""", "openai",
        ),
        "Messages": (
            "/v1/messages", "For the `anthropic` client and Claude Code.", "messages",
            f'{{"model": "auto", "max_tokens": 1000,\n  "messages": {said}}}',
            f"""import anthropic

client = anthropic.Anthropic(base_url="{root}", api_key="token of HyDRA")
answer = client.messages.create(
    model="auto", max_tokens=1000, messages={said}
)
print(answer.content[0].text)""", "anthropic",
        ),
        "Responses": (
            "/v1/responses", "For the `openai` client and Codex CLI.", "responses",
            f'{{"model": "auto",\n  "input": "{_ASKED}"}}',
            f"""{openai}
answer = client.responses.create(model="auto", input="{_ASKED}")
print(answer.output_text)""", "openai",
        ),
        "Decisions": (
            "/v1/decisions", f"Which model, or which tier, a request should go to. {nothing}", "",
            f"""{{"model": "hydra",
  "input": "{_ASKED}",
  "questions": [{{"type": "choice", "name": "model", "instructions": "Which model?",
    "choices": [{{"value": "{one}"}}, {{"value": "{two}"}}]}}]}}""",
            f"""{openai}
choices = [{{"value": "{one}"}}, {{"value": "{two}"}}]
question = {{"type": "choice", "name": "model", "instructions": "Which?", "choices": choices}}
answer = client.decisions.create(
    model="hydra", input="{_ASKED}", questions=[question]
)
print(answer.answers[0].choice)""", "openai",
        ),
        "System One": (
            "/v1/systemone",
            "For `systemone-client` and LiteLLM's classifier: a choice among models, or among "
            f"tiers that are given cheapest first. {nothing}", "",
            f"""{{"state": "{_ASKED}",
  "questions": {{"tier": {{"type": "choice", "instructions": "Which tier?",
    "criteria": {{"SIMPLE": "cheap", "COMPLEX": "strong"}}}}}}}}""",
            f"""from systemone import Choice, Client

tiers = Choice("Which tier?", {{"SIMPLE": "cheap", "COMPLEX": "strong"}})
with Client("{root}", api_key="token of HyDRA") as client:
    answer = client.system_one("{_ASKED}", {{"tier": tiers}})
print(answer.choices["tier"].choice)""", "systemone-client",
        ),
    }  # fmt: skip
    return {
        name: Way(path, note, speaks, f"curl -sf {root}{path} -d '{body}'", python, package)
        for name, (path, note, speaks, body, python, package) in known.items()
    }


def upstream_note(way: Way) -> str:
    """What the way needs of the upstreams, and what becomes of a model that lacks it."""
    if not way.speaks:
        return "`serve` needs no upstreams for it."
    default = " This is what an upstream speaks without `speaks`." if way.speaks == "chat" else ""
    return (
        f"Needs an upstream with `speaks: [{way.speaks}]` in upstreams.yaml.{default} Nothing is "
        "translated: other models are ruled out, and the receipt says of each: "
        f"“{SENTENCES[Gate.FORM]}”"
    )
