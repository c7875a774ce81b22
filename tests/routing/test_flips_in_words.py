"""Decisions in words: what is shown must be true."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.types import DIMENSIONS, CostBasis
from hydra_core.routing.flips import Flip, contenders, flip_text, flips, strip
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from tests.routing.conftest import make_catalog, spec


def decide(need, catalog=None, query=None, **more):
    return Router(catalog or make_catalog()).decide(np.full(4, need), query, **more)


def test_the_shown_tau_flips_the_choice():
    rng = np.random.default_rng(5)
    for _ in range(200):
        need = rng.uniform(0, 1, 4)
        catalog = make_catalog(tau=round(float(rng.uniform(0.01, 2.0)), 3))
        made = Router(catalog).decide(need)
        told = [flip for flip in flips(made, catalog) if flip.subject == "τ"]
        for flip in told:
            again = Router(make_catalog(tau=float(flip.after))).decide(need)
            assert again.model == flip.model
            assert again.model != made.model
            assert flip.cheaper == (float(flip.after) > made.tau)


def test_a_flip_close_to_tau_is_told_in_three_digits_where_that_flips_too():
    flip = Flip("tau", "", 0.24, 0.2409, "b", cheaper=True, until=0.31)
    assert str(flip_text(flip, DIMENSIONS, CostBasis.LIST_PRICE)) == "τ: 0.24 -> 0.241 chooses b"


def test_a_reason_shows_tau_as_it_is_set_and_which_is_larger():
    made = decide(0.5, make_catalog(tau=1.1999996))
    reasons = {row.model: row.reason for row in made.candidates()}
    assert reasons["cheap"].startswith("Shortfall 1.2000000 is above τ 1.1999996;")
    assert reasons["mid"] == "Cheapest model within τ: shortfall 0.000 ≤ 1.2."
    alone = make_catalog(spec("only", 1, 0.2), tau=0.01216)
    told = decide(0.5, alone).candidates()[0].reason
    assert told == "No model is within τ 0.01216; the closest one is used (1.200)."
    both = make_catalog(spec("weak", 1, 0.2), spec("strong", 2, 0.9), tau=0.01216)
    denied = decide(0.5, both, Query("x", deny=frozenset({"strong"})))
    assert denied.reason.startswith("No model that may serve this is within τ 0.01216; the closest")


def test_the_shown_price_and_capability_read_as_sentences():
    told = [str(flip) for flip in flips(decide(0.5), make_catalog())]
    assert any(re.fullmatch(r"τ: .* -> .* chooses \w+", text) for text in told)
    assert all(" chooses " in text or " would be chosen" in text for text in told)


def test_the_price_of_a_model_with_effort_levels_never_changes_alone():
    """All levels have one list price: no advice on what one of them would cost."""
    catalog = make_catalog()
    told = [str(flip) for flip in flips(decide(0.5), catalog)]
    named = next(one for one in catalog.models if f"If {one.id} cost" in " ".join(told))
    level = replace(named, id="level", variant_of=named.id)
    family = replace(catalog, models=(*catalog.models, level))
    said = " ".join(map(str, flips(decide(0.5, family), family)))
    assert f"If {named.id} cost" not in said
    assert "If level cost" not in said
    other = replace(level, output_usd_per_mtok=99.0)
    apart = replace(catalog, models=(*catalog.models, other))
    assert f"If {named.id} cost" in " ".join(map(str, flips(decide(0.5, apart), apart)))


def test_only_models_past_the_gates_and_healthy_are_in_strip_and_flips():
    made = decide(0.9, query=Query("", deny=frozenset({"mid"})), health={"cheap": 0.0})
    assert contenders(made).ids == ("strong",)
    assert [part.model for part in strip(made)] == ["strong"]
    assert not any(flip.subject == "τ" for flip in flips(made, make_catalog()))


def test_a_strip_covers_every_tau_without_gaps():
    parts = strip(decide(0.7))
    assert parts[0].start == 0.0
    assert parts[-1].end == np.inf
    assert all(a.end == b.start for a, b in zip(parts, parts[1:], strict=False))


def test_a_weight_that_nobody_would_set_is_not_told():
    for need in np.linspace(0.05, 0.95, 19):
        for flip in flips(decide(float(need)), make_catalog()):
            if flip.subject.startswith("Weight"):
                assert 0.05 <= float(flip.after) <= 10.0


@pytest.mark.parametrize(
    ("flip", "told"),
    [
        (Flip("tau", "", 0.24, 0.31040001, "b"), "τ: 0.24 -> 0.311 chooses b"),
        (
            Flip("weight", "", 1.0, 1.4001, "b", dimension=2),
            "Weight of debugging: 1.00 -> 1.401 chooses b",
        ),
        (
            Flip("capability", "a", 0.10, 0.2199, "b", dimension=3),
            "Tool use capability of a: 0.10 -> 0.22 chooses b",
        ),
        (
            Flip("cost", "a", 3.0, 1.5, "b"),
            "If a cost $1.50 per Mtok or less (now $3.00), b would be chosen",
        ),
    ],
)
def test_values_are_short_and_on_the_far_side(flip, told):
    assert str(flip_text(flip, DIMENSIONS, CostBasis.LIST_PRICE)) == told


def test_realised_costs_are_named_as_such():
    flip = flip_text(Flip("cost", "a", 0.3, 0.1, "b"), DIMENSIONS, CostBasis.REALISED)
    assert flip.subject == "Realised cost of a"
    assert str(flip) == "If a cost $0.10 per query or less (now $0.30), b would be chosen"
    small = flip_text(Flip("cost", "a", 0.0000483, 0.0006, "b"), DIMENSIONS, CostBasis.REALISED)
    assert str(small) == "If a cost $0.0006 per query or more (now $0.0000483), b would be chosen"


def test_one_model_alone_has_nothing_to_flip():
    catalog = make_catalog(spec("only", 1, 0.5))
    assert flips(decide(0.9, catalog), catalog) == ()
