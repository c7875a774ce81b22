"""Which predictor bundle the session works with, and catalogs that belong to another one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.schema import parse_catalog
from hydra_core.console import cache, drafts, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.widgets import literal
from hydra_core.predictor.bundle import SHIPPED, Bundle, load_bundle
from hydra_core.store.roles import Action

_FOLDER: Final = "a folder"
_SHIPPED: Final = {"default": "", "modernbert": str(SHIPPED.parent / "modernbert")}
_REBOUND: Final = "bundle.rebound"


def choose() -> None:
    """Draw the choice of the bundle that scores messages: a shipped one, or a folder."""
    now = str(st.session_state.get(cache.BUNDLE, ""))
    names = {folder: name for name, folder in _SHIPPED.items()}
    options = [*_SHIPPED, _FOLDER]
    picked = st.segmented_control(
        "Predictor bundle", options, default=names.get(now, _FOLDER), required=True,
        key="bundle.choice", disabled=not identity.may(Action.IMPORT),
        help="Scores messages and eval sets. A catalog's score bands belong to one bundle.",
    )  # fmt: skip
    if picked != _FOLDER:
        wanted = _SHIPPED[picked or "default"]
    else:
        wanted = st.text_input(
            "Folder with bundle.yaml", "" if now in names else now, key="bundle.path",
            placeholder="/models/my-bundle",
        ).strip()  # fmt: skip
        if not wanted:
            return
    if wanted == now:
        return
    try:
        _opened(wanted)
    except HydraError as error:
        widgets.problem(error)
        return
    st.session_state[cache.BUNDLE] = wanted
    st.rerun()


def on_this_bundle(entry: CatalogEntry) -> Catalog | None:
    """The catalog where its bands are those of the session's bundle, or once it was rebound here.

    None after saying why it cannot be used as it stands and offering to rebind it.
    """
    assert entry.catalog is not None
    bundle = cache.bundle()
    if entry.catalog.predictor_fingerprint == bundle.fingerprint:
        return entry.catalog
    if st.session_state.get(_REBOUND) == (entry.key, bundle.fingerprint):
        return _rebound(entry, bundle)
    _offer(entry, entry.catalog, bundle)
    return None


def _offer(entry: CatalogEntry, catalog: Catalog, bundle: Bundle) -> None:
    known = False
    for folder in _SHIPPED.values():
        with suppress(HydraError):
            known |= _opened(folder).fingerprint == catalog.predictor_fingerprint
    missing = "" if known else " No bundle here has its fingerprint."
    st.warning(
        f"The score bands of {literal(entry.key)} belong to predictor "
        f"{literal(catalog.predictor)}.{missing} This console scores messages with "
        f"{literal(bundle.name)}, where the catalog's capabilities would mean something else.",
        title="This catalog belongs to another predictor",
        icon=":material/link_off:",
    )
    if catalog.success_profiles is not None:
        own = "Choose that bundle on Home, or make" if known else "Make"
        st.caption(
            "It cannot be rebound: its success profiles were fitted to that predictor's "
            f"requirements. {own} a catalog for {literal(bundle.name)} on Eval sets."
        )
        return
    st.button(
        f"Rebind it to {bundle.name}", type="primary", icon=":material/link:", key="bundle.rebind",
        on_click=st.session_state.__setitem__,
        args=(_REBOUND, (entry.key, bundle.fingerprint)),
        help="For this page only; nothing is saved. Evidence and values set by hand are placed on "
        "the other score bands. Tune τ and the weights again.",
    )  # fmt: skip
    if known:
        st.caption("Or choose its own bundle on Home.")


def _opened(folder: str) -> Bundle:
    return load_bundle(Path(folder) if folder else None)


def _rebound(entry: CatalogEntry, bundle: Bundle) -> Catalog | None:
    """The catalog on the bundle's score bands, with a button to keep it."""

    def rebound(text: str) -> str:
        bands = dict(zip(bundle.dimensions, bundle.bands, strict=True))
        return rebind(text, bundle.name, bundle.fingerprint, bands, keep_places=True)

    try:
        catalog = parse_catalog(rebound(drafts.load(entry).published_text), entry.key)
    except HydraError as error:
        widgets.problem(error)
        return None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(f"Rebound to {bundle.name}, not saved", icon=":material/link:", color="orange")
        if drafts.may_edit():
            st.button(
                "Keep it in my draft", icon=":material/edit_note:", key="bundle.keep",
                on_click=drafts.editing(entry, rebound),
            )  # fmt: skip
    return catalog
