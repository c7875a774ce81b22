"""How clients ask: every address of the router, with commands that are answered as they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st

from hydra_core.console import cache, widgets
from hydra_core.routing.gates import SENTENCES, Gate

#: Where `serve` listens unless it is told otherwise.
ADDRESS: Final = "http://127.0.0.1:8600"
_ASKED: Final = "Fix the race in the reconnect code"


def show() -> None:
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
