"""The selectors of eval set, catalog and baseline, and which of them fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, Chosen
from hydra_core.console import cache, drafts, state, widgets
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.drafts import Working
from hydra_core.console.frame import Head, read_address, write_address

#: What the solver remembers makes sense on one eval set and catalog only.
_OF_THE_SET = ("tune.goal_qr", "tune.goal_cost")
#: How parameters of a link that are no names are read.
_READ: Mapping[str, Callable[[str], object]] = {
    "tau": state.number,
    "v": state.dollars,
    "rule": state.rule_named,
    "at": state.number,
    "at_v": state.dollars,
}
#: What the address of a part on a draft holds beside set and catalog: What-if's setting and event.
_OF_A_DRAFT: Mapping[str, str] = {
    "at": "what_if.tau",
    "at_v": "what_if.value_usd",
    "event": "catalog.event.kind",
    "model": "catalog.event.model",
    "prices": "catalog.event.prices",
}


def fits(entry: SetEntry, catalog: CatalogEntry) -> bool:
    """Whether this eval set can be replayed under this catalog: scored, and common models."""
    return catalog.catalog is not None and entry.fits(catalog.catalog)


def current() -> tuple[SetEntry, CatalogEntry] | None:
    """The eval set and catalog in use: the chosen ones, else the operator's own, else samples."""
    sets, catalogs = cache.evalsets(), cache.catalogs()
    if not sets or not catalogs:
        return None
    tuning = state.get()
    entry = next((s for s in sets if s.key == tuning.evalset), None)
    catalog = next((c for c in catalogs if c.key == tuning.catalog), None)
    if entry is None and catalog is None:
        catalog = next(iter(cache.own_catalogs()), None)
    if entry is None:
        entry = _first_set(sets, catalogs, catalog)
    if catalog is None:
        catalog = _first_fitting(entry, catalogs)
    if (tuning.evalset, tuning.catalog) != (entry.key, catalog.key):
        _say_what_is_shown("eval set", tuning.evalset, entry.key)
        _say_what_is_shown("catalog", tuning.catalog, catalog.key)
        state.put(evalset=entry.key, catalog=catalog.key)
    return entry, drafts.with_predictions(catalog)


def _say_what_is_shown(kind: str, wanted: str, shown: str) -> None:
    """Tell who followed a link to what is not here, or not any more, that it is another one."""
    if wanted not in ("", shown):
        text = f"There is no {kind} {wanted} here. {shown} is shown instead."
        st.toast(widgets.literal(text), icon=":material/link_off:", duration="long")


def _first_set(
    sets: Sequence[SetEntry], catalogs: Sequence[CatalogEntry], wanted: CatalogEntry | None
) -> SetEntry:
    """The best set that fits a catalog, or any where none is wanted: own ones before samples."""
    best: Sequence[SetEntry] = ()
    if wanted is not None and wanted.catalog is not None:
        best = drafts.fitting_sets(wanted.catalog)
    if not best:
        fitting = [s for s in sets if any(fits(s, c) for c in catalogs)]
        best = sorted(fitting, key=lambda s: s.shipped)
    return (best or sets)[0]


def current_catalog() -> CatalogEntry | None:
    """The catalog in use, also where there is no eval set; None where there is no catalog."""
    pair, catalogs = current(), cache.catalogs()
    if pair is not None:
        return pair[1]
    named = (c for c in catalogs if c.key == state.get().catalog)
    chosen = next(named, next(iter(catalogs), None))
    return None if chosen is None else drafts.with_predictions(chosen)


def working() -> Working | None:
    """The catalog in use with the actor's draft, None where there is none; see `drafts.load`."""
    entry = current_catalog()
    return None if entry is None else drafts.load(entry)


def on_draft(
    head: Head, body: Callable[[CatalogEntry, Working], None], *, tools: bool = True
) -> None:
    """A part about a catalog, chosen in its head, and its draft; with tools edits are undone."""
    follow(_OF_A_DRAFT)
    entry = choose_catalog(head.right)
    if entry is None:
        st.warning("There is no catalog yet.")
    else:
        (st.fragment(_draft) if tools else _draft)(entry, body, tools)


def _draft(entry: CatalogEntry, body: Callable[[CatalogEntry, Working], None], tools: bool) -> None:
    try:
        working = drafts.load(entry)
        drafts.status_line(working, tools=tools)
        body(entry, working)
        write(_OF_A_DRAFT)
    except HydraError as error:
        widgets.problem(error)


def edit(change: Callable[[str, str], str], chosen: Chosen | None = None) -> bool:
    """Change the draft of the catalog in use, from text and key to text; see `drafts.edit`."""
    entry = current_catalog()
    return entry is not None and drafts.edit(
        entry, lambda text: change(text, entry.key), chosen=chosen
    )


def on_data(
    head: Head,
    body: Callable[[SetEntry, Catalog], None],
    *,
    baseline: bool = True,
    link: Mapping[str, str] | None = None,
) -> None:
    """A page or part about one eval set under one catalog: selectors in its head, then the body.

    Args:
        body: Draws the part; what it raises is shown in its place.
        baseline: Whether savings are measured against a model.
        link: See `follow`; set and catalog are in the address too. None for a part that writes
            its own.
    """
    follow(link or {})
    with head.right:
        chosen = choose_data(baseline=baseline)
    if chosen is None:
        return
    with head.left:
        widgets.synthetic_badge(chosen[0].info.synthetic)
    if link is not None:
        write(link)
    widgets.done(lambda: body(*chosen))


def follow(link: Mapping[str, str]) -> None:
    """Begin a page's choices with those of the address it was opened with.

    Args:
        link: Parameter of the address -> key of the widget that it restores. What the address
            says is no option yet: whoever draws the widget looks whether it is.
    """
    given = read_address()
    if given == st.session_state.get(state.OTHER_LINK):
        return
    for name, key in link.items():
        found = _READ.get(name, str)(given.get(name, ""))
        if found not in (None, "") and key not in st.session_state:
            st.session_state[key] = found


def write(link: Mapping[str, str]) -> None:
    """Put set, catalog and a page's choices into the address, for `follow` to restore."""
    chosen = {name: st.session_state.get(key) for name, key in link.items()}
    shown = {"set": state.get().evalset, "catalog": state.get().catalog, **chosen}
    text = {name: str(one) for name, one in shown.items() if one not in (None, "")}
    st.session_state[state.OTHER_LINK] = text
    write_address(text)


def choose_data(*, baseline: bool = True) -> tuple[SetEntry, Catalog] | None:
    """Draw the selectors and return what is chosen; None after saying what is missing."""
    pair = current()
    if pair is None:
        st.warning("There is no eval set or no catalog yet.")
        return None
    entry, catalog = pair
    sets, catalogs = cache.evalsets(), cache.catalogs()
    names = {s.key: s.info.name for s in sets}
    places = st.columns([7, 4.2, 3.8] if baseline else [6, 4])
    _select(places[0], "Eval set", "evalset", names, entry.key, use_set)
    labels = {
        c.key: c.key if fits(entry, c) else f"{c.key} (no fit)"
        for c in sorted(catalogs, key=lambda c: not fits(entry, c))
    }
    _select(places[1], "Catalog", "catalog", labels, catalog.key, use_catalog)
    if catalog.catalog is None:
        st.error(widgets.literal(catalog.problem), icon=":material/error:")
        return None
    if not baseline:
        return entry, catalog.catalog
    ids = [m.id for m in catalog.catalog.models if m.id in entry.info.models]
    chosen = state.get().baseline if state.get().baseline in ids else ""
    shown = {"": "the costliest", **{model: model for model in ids}}
    _select(
        places[2], "Savings against", "baseline", shown, chosen, lambda one: state.put(baseline=one)
    )
    return entry, catalog.catalog


def choose_catalog(
    place: DeltaGenerator, named: Callable[[CatalogEntry], str] = lambda entry: entry.key
) -> CatalogEntry | None:
    """Draw the catalog selector, each called as `named` says; None where there is no catalog."""
    chosen = current_catalog()
    if chosen is None:
        return None
    labels = {c.key: named(c) for c in cache.catalogs()}
    _select(place, "Catalog", "catalog", labels, chosen.key, _use_catalog_alone)
    return next(c for c in cache.catalogs() if c.key == chosen.key)


def offer_texts() -> None:
    """A button for each set with texts and scores, where the one in use has no texts."""
    bundle = cache.bundle().fingerprint
    with st.container(horizontal=True, horizontal_alignment="center"):
        for entry in cache.evalsets():
            if entry.info.texts and bundle in entry.info.scored and not entry.info.problem:
                st.button(
                    f"Open {widgets.literal(entry.info.name)}", key=f"data.texts.{entry.key}",
                    icon=":material/arrow_forward:", on_click=use_set, args=(entry.key,),
                )  # fmt: skip


def use_set(key: str) -> None:
    """Work with another eval set, and with the same catalog where that fits it."""
    entry = next((s for s in cache.evalsets() if s.key == key), None)
    state.put(evalset=key, pin=None, aim=None)
    widgets.forget(*_OF_THE_SET)
    catalogs = cache.catalogs()
    kept = next((c for c in catalogs if c.key == state.get().catalog), None)
    if entry is not None and catalogs and (kept is None or not fits(entry, kept)):
        use_catalog(_first_fitting(entry, catalogs).key)


def choose_evalset(place: DeltaGenerator, catalog: Catalog) -> SetEntry | None:
    """Draw the selector of the eval sets that fit a catalog; None where none does."""
    chosen = drafts.set_in_view(catalog)
    if chosen is not None:
        names = {one.key: one.info.name for one in cache.evalsets() if one.fits(catalog)}
        _select(place, "Eval set", "evalset", names, chosen.key, use_set)
    return chosen


def _select(
    place: DeltaGenerator,
    label: str,
    field: str,
    names: Mapping[str, str],
    value: str,
    changed: Callable[[str], None],
) -> None:
    place.selectbox(
        label, tuple(names), format_func=lambda option: names.get(option, option),
        **state.bound(f"data.{field}", value, changed),
    )  # fmt: skip


def _use_catalog_alone(key: str) -> None:
    """Where no eval set is shown beside the catalog, it follows the catalog."""
    use_catalog(key)
    sets = cache.evalsets()
    chosen = next((c for c in cache.catalogs() if c.key == key), None)
    now = next((s for s in sets if s.key == state.get().evalset), None)
    if chosen is not None and (now is None or not fits(now, chosen)):
        fitting = drafts.fitting_sets(chosen.catalog) if chosen.catalog else ()
        state.put(evalset=fitting[0].key if fitting else state.get().evalset)


def use_catalog(key: str) -> None:
    """Another catalog brings its own policy: tau and weights live on its own score bands."""
    state.put(catalog=key, tau=None, weights=None, rule=None, value_usd=None, pin=None, aim=None)
    widgets.forget(*_OF_THE_SET)


def _first_fitting(entry: SetEntry, catalogs: Sequence[CatalogEntry]) -> CatalogEntry:
    """The catalog with the fewest models left out on either side, of those that fit if any do."""

    def apart(candidate: CatalogEntry) -> tuple[int, bool]:
        models = candidate.catalog.models if candidate.catalog else ()
        return len({model.id for model in models} ^ set(entry.info.models)), not candidate.own

    fitting = [candidate for candidate in catalogs if fits(entry, candidate)]
    return min(fitting or catalogs, key=apart)
