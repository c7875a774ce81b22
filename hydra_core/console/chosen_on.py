"""Which eval set a policy was chosen on, recorded in the catalog as it is drafted."""

from __future__ import annotations

from hydra_core.base.types import Catalog, Chosen, Selection
from hydra_core.catalog.chosen_and_promised import chosen_between, record_choice
from hydra_core.console import cache, state
from hydra_core.console.cache import SetEntry
from hydra_core.evalsets.evalset import sample_of


def chosen(entry: SetEntry, how: Selection, *, knob_alone: bool) -> Chosen:
    """The record of a choice on an eval set."""
    digest, sample = _queries(entry)
    return Chosen(digest, entry.info.name, how, knob_alone, sample)


@cache.cached(32)
def _queries(entry: SetEntry) -> tuple[str, tuple[str, ...]]:
    loaded = cache.evalset(entry)
    return loaded.queries_digest, sample_of(loaded.query_marks)


def in_view(catalog: Catalog) -> SetEntry | None:
    """The eval set whose figures the pages show for a catalog; None where none fits.

    It is the chosen one where that fits, else the best that does.
    """
    sets = fitting(catalog)
    key = state.get().evalset
    return next((one for one in sets if one.key == key), sets[0] if sets else None)


def fitting(catalog: Catalog) -> tuple[SetEntry, ...]:
    """The eval sets that fit a catalog, the best first.

    The operator's own go before samples, then what the catalog was chosen on, then the set with
    outcomes of most of its models.
    """
    models = {model.id for model in catalog.models}
    named = {one.evalset for one in catalog.policy.chosen_on}

    def rank(entry: SetEntry) -> tuple[bool, bool, int]:
        return entry.shipped, entry.info.name not in named, -len(models & set(entry.info.models))

    return tuple(sorted((one for one in cache.evalsets() if one.fits(catalog)), key=rank))


def recorded(catalog: Catalog | None, entry: SetEntry | None) -> bool:
    """Whether a catalog records already that it was chosen on this set."""
    if catalog is None or entry is None:
        return False
    here = chosen(entry, Selection.LOOKED, knob_alone=True).queries
    return any(one.queries == here for one in catalog.policy.chosen_on)


def looked_at(before: Catalog | None, text: str, entry: SetEntry | None) -> str:
    """The text with the record that it was chosen while this set's figures were in sight.

    Nothing is recorded where it chooses nothing anew, or is not a valid catalog yet.
    """
    catalog, _ = cache.parsed(text, "draft")
    if before is None or catalog is None or entry is None:
        return text
    knob_alone = chosen_between(before, catalog)
    if knob_alone is None:
        return text
    return record_choice(text, chosen(entry, Selection.LOOKED, knob_alone=knob_alone))


def record_text(catalog: Catalog | None) -> str:
    """Where a catalog's policy was chosen and what that means for its result; '' if nowhere."""
    records = [
        f"{one.evalset} ({'τ or V' if one.knob_alone else 'policy, profiles or pool'})"
        for one in (catalog.policy.chosen_on if catalog else ())
    ]
    if not records:
        return ""
    return (
        f"Chosen on {', '.join(records)}. On these queries the interval of "
        "the result covers the whole curve."
    )
