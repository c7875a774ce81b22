"""Exports: a release, files for other routers and tables; and the import of a catalog."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import cycle
from shlex import quote
from typing import Literal

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.diff import semantic_diff
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.identifiers import id_problem, skeleton
from hydra_core.console import cache, drafts, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.releases import publish as ship_publish
from hydra_core.console.widgets import literal
from hydra_core.evalsets.folders import folder_name
from hydra_core.export import release
from hydra_core.export.foreign import Export
from hydra_core.export.litellm import litellm_config, without_provider
from hydra_core.export.vllm_semantic_router import vllm_semantic_router_config
from hydra_core.store.roles import Action

_RELEASE, _TABLES = "HyDRA release", "Tables"
_LITELLM, _VLLM = "LiteLLM proxy", "vLLM Semantic Router"
_FORMATS = (_RELEASE, _LITELLM, _VLLM, _TABLES)


def export(entry: CatalogEntry, working: Working) -> None:
    """Offer what is published as a file for HyDRA or another router."""
    chosen = widgets.switch("Format", _FORMATS, "ship.format")
    catalog = working.published
    if catalog is None:
        st.error("What is published is not a valid catalog.", icon=":material/error:")
        return
    name = entry.key.replace("/", "-")
    if working.revision:
        name = f"{name}-r{working.revision}"
        st.caption(f"Revision {working.revision}. A draft is not exported; publish it first.")
    else:
        st.caption("Not published yet; the export says so.")
    if chosen == _LITELLM:
        _litellm(entry, catalog, name)
    elif chosen == _VLLM:
        _foreign(vllm_semantic_router_config(catalog), f"{name}.vllm-sr.yaml")
    elif chosen == _TABLES:
        _tables(catalog, name)
    else:
        _release(working, name)


def _release(working: Working, name: str) -> None:
    newest, catalog = working.newest, working.published
    assert catalog is not None
    measured, me = newest.metrics if newest else {}, identity.actor().name
    now = datetime.now(UTC)
    origin = release.provenance(newest, measured, author=me, note="", now=now)
    try:
        text = release.release_text(release.portable(working.published_text), origin)
        whole: str | bytes = text
        if catalog.outcome_model is not None:
            whole = release.release_archive(working.published_text, catalog, origin, name)
    except HydraError as error:
        widgets.problem(error)
        return
    kind, mime = ("yaml", "application/yaml") if whole is text else ("zip", "application/zip")
    left, right = st.columns([8, 3], gap="medium")
    with right:
        st.download_button(
            "Download the release", whole, f"{name}.{kind}", mime, type="primary",
            icon=":material/download:", width="stretch", on_click="ignore",
        )  # fmt: skip
        st.caption(
            ("The zip holds the catalog and its outcome model. " if kind == "zip" else "")
            + "The first lines say who published it, why, and what was measured. Check it with:"
        )
        unpack = f"unzip {quote(name + '.zip')}\n" if kind == "zip" else ""
        check = f"hydra-router validate \\\n  {quote(name + '.yaml')}"
        widgets.commands(unpack + check)
    with left:
        st.code(text, language="yaml", height=520)


def _litellm(entry: CatalogEntry, catalog: Catalog, name: str) -> None:
    """Offer LiteLLM's configuration once every model has a provider."""
    missing = without_provider(catalog)
    providers: dict[str, str] = {}
    if missing:
        st.markdown("**Who serves these models?**")
        st.caption("LiteLLM calls each model by provider/name, and the catalog has no provider.")
        for place, model in zip(cycle(st.columns(3)), missing, strict=False):
            providers[model] = place.text_input(
                literal(model), key=f"ship.provider.{model}", placeholder="such as openai"
            ).strip()
        if not all(providers.values()):
            return

        def provided(text: str) -> str:
            document = CatalogDocument.parse(text, entry.key)
            for model, provider in providers.items():
                document.set("models", model, "provider", provider)
            return document.text()

        st.button(
            "Keep the providers in my draft", icon=":material/edit_note:", key="ship.providers",
            disabled=not drafts.may_edit(), on_click=drafts.editing(entry, provided),
        )  # fmt: skip
    made = litellm_config(catalog, providers)
    run = f"HYDRA_CATALOG={quote(name + '.yaml')} \\\n  litellm --config {quote(name)}.litellm.yaml"
    _foreign(made, f"{name}.litellm.yaml", run)


def _foreign(made: Export, name: str, run: str = "") -> None:
    """Offer a file for another router, and say how it is run there."""
    left, right = st.columns([7, 4], gap="medium")
    with right:
        st.download_button(
            f"Download {name.split('.', 1)[1]}", made.text, name, "application/yaml",
            type="primary", icon=":material/download:", width="stretch", on_click="ignore",
        )  # fmt: skip
        if run:
            st.caption("Run it beside the HyDRA release, with `hydra-console[litellm]` installed:")
            widgets.commands(run)
        st.markdown("**Not in this file**")
        st.markdown(widgets.bullets(made.not_expressed))
    with left:
        st.code(made.text, language="yaml", height=520)


def _tables(catalog: Catalog, name: str) -> None:
    frame = release.pool_export(catalog)
    with st.container(horizontal=True):
        tables.offer_downloads(frame, "ship.models")
        st.download_button(
            "Models as JSON", frame.to_json(orient="records", indent=2), f"{name}.models.json",
            "application/json", icon=":material/download:", type="tertiary", on_click="ignore",
        )  # fmt: skip
    height: int | Literal["content"] = "content" if len(frame) <= 12 else 460
    st.dataframe(frame, hide_index=True, height=height, placeholder="–")


def adopt(entry: CatalogEntry, working: Working) -> None:
    """Validate and compare a catalog from elsewhere, then take it as a draft or a new one."""
    widgets.show_error()
    upload = st.file_uploader("Catalog or release, YAML", type=["yaml", "yml"], key="ship.upload")
    if upload is None:
        st.caption("You see every difference before anything changes.")
        return
    try:
        text = widgets.uploaded_text(upload)
    except HydraError as error:
        widgets.problem(error)
        return
    checked = release.check_release(text)
    if checked is not None and checked.intact:
        st.success("A release, unchanged since it was written.", icon=":material/verified:")
    elif checked is not None:
        st.warning(
            "A release that was edited since: its provenance no longer describes it.",
            icon=":material/warning:",
        )
    body = _bound(release.without_header(text))
    catalog, problems = cache.parsed(body, upload.name)
    if catalog is None:
        st.error(widgets.bullets(problems), title="Not a valid catalog", icon=":material/error:")
        return
    left, right = st.columns([7, 4], gap="medium")
    with left:
        st.subheader(literal(f"Against {entry.key} as it stands"), anchor=False)
        if working.catalog is not None:
            changes = semantic_diff(working.catalog, catalog)
            ship_publish.changes_list(changes)
            if not changes:
                st.caption("The same in meaning.")
    with right.container(border=True):
        _take(entry, working, body, catalog)


def _bound(text: str) -> str:
    """Return the text, moved to this console's predictor where that is asked for."""
    catalog, _ = cache.parsed(text, "the upload")
    bundle = cache.bundle()
    if catalog is None or catalog.predictor_fingerprint == bundle.fingerprint:
        return text
    st.warning(
        literal(
            f"Its score bands belong to predictor {catalog.predictor!r}; this console uses "
            f"{bundle.name!r}, where its capabilities would mean something else."
        ),
        icon=":material/link_off:",
    )
    if not st.toggle("Recompute it from its evidence on this predictor's bands", key="ship.rebind"):
        return text
    try:
        return rebind(text, bundle.name, bundle.fingerprint, bundle.bands)
    except HydraError as error:
        widgets.problem(error)
        return text


def _take(entry: CatalogEntry, working: Working, text: str, catalog: Catalog) -> None:
    st.button(
        literal(f"Put into the draft of {entry.key}"), icon=":material/edit:", width="stretch",
        disabled=not drafts.may_edit(), key="ship.adopt",
        on_click=drafts.editing(entry, lambda _: text, working.text),
    )  # fmt: skip
    st.divider()
    name = st.text_input("Or as a catalog of its own, named", value=folder_name(catalog.name))
    twin = next((k.key for k in cache.catalogs() if skeleton(k.key) == skeleton(name)), None)
    wrong = id_problem(name)
    if twin is not None:
        st.caption(literal(f"There is a catalog {twin}."))
    elif wrong is not None:
        st.caption(literal(f"The name {wrong[0]}; {wrong[1]}."))
    st.button(
        "Publish as its revision 1", icon=":material/publish:", width="stretch",
        disabled=not identity.may(Action.PUBLISH) or twin is not None or wrong is not None,
        help=identity.why_not(Action.PUBLISH),
        on_click=_adopt_new, args=(name, text), key="ship.adopt_new",
    )  # fmt: skip


def _adopt_new(name: str, text: str) -> None:
    widgets.later(
        lambda: cache.store().publish(
            name, text, actor=identity.actor(), base_revision=0, note="adopted from a file"
        )
    )
