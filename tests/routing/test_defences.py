"""Score caps and the conversation's budget: read, obeyed by router and replay, told in receipts."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.types import Defences
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import load_catalog, parse_catalog
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.decision import redecide
from hydra_core.routing.query import BadFieldError, Query, check_fields, limits_of
from hydra_core.routing.router import Router

TODAY = date(2026, 1, 1)
TEXT = Path("catalog/matched_three.yaml").read_text()


def with_defences(text):
    return parse_catalog(TEXT.replace("\npolicy:\n", f"\npolicy:\n  defences: {text}\n", 1))


class Demanding:
    """Needs everything of every model."""

    def predict(self, texts, turns=None, contexts=None):
        need = np.ones((len(texts), 4))
        whole = np.zeros(len(texts), dtype=np.intp)
        return Prediction(need, whole, whole.astype(bool))


def test_a_catalog_without_defences_has_none():
    assert load_catalog(Path("catalog/matched_three.yaml")).policy.defences == Defences()


def test_defences_are_read_by_name():
    found = with_defences("{score_caps: {reasoning: 0.2}, budget_usd: 0.5}").policy.defences
    assert dict(found.score_caps) == {"reasoning": 0.2}
    assert found.budget_usd == 0.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{score_caps: {reasonin: 0.2}}", "reasonin"),
        ("{score_caps: {reasoning: 1.2}}", "reasoning"),
        ("{budget_usd: 0}", "budget_usd"),
        ("{anger: 1}", "anger"),
    ],
)
def test_wrong_defences_are_refused_with_their_place(text, said):
    with pytest.raises(CatalogError, match=said):
        with_defences(text)


def test_caps_bound_what_a_score_can_ask_for():
    caps = "{score_caps: {reasoning: 0, code_generation: 0, debugging: 0, tool_use: 0}}"
    free = Router(with_defences("{}"), Demanding(), today=lambda: TODAY)
    bound = Router(with_defences(caps), Demanding(), today=lambda: TODAY)
    models = pool(with_defences("{}"), today=TODAY)
    cheapest = models.ids[int(models.cost.argmin())]
    decision = bound.route(Query("Design everything"))
    assert decision.model == cheapest != free.route(Query("Design everything")).model
    assert decision.receipt()["capped"] == list(decision.dimensions) or (
        decision.receipt()["capped"] == decision.dimensions
    )
    assert redecide(decision.receipt()) == decision.model


def test_capped_scores_never_rise():
    models = pool(with_defences("{score_caps: {debugging: 0.4}}"), today=TODAY)
    scores = np.random.default_rng(0).random((50, 4))
    seen = models.capped(scores)
    assert (seen <= scores).all()
    assert (seen[:, 2] == np.minimum(scores[:, 2], 0.4)).all()
    assert (np.delete(seen, 2, axis=1) == np.delete(scores, 2, axis=1)).all()


def test_a_conversation_over_its_budget_gets_the_cheapest_model():
    router = Router(with_defences("{budget_usd: 0.5}"), Demanding(), today=lambda: TODAY)
    models = pool(with_defences("{}"), today=TODAY)
    cheapest = models.ids[int(models.cost.argmin())]
    before = router.route(Query("x", spent_usd=0.49))
    after = router.route(Query("x", spent_usd=0.5))
    assert before.model != cheapest
    assert after.model == cheapest
    told = {row.model: row.reason for row in after.candidates()}
    assert "has spent $0.5 of its budget of $0.5" in told[before.model]
    assert redecide(after.receipt()) == cheapest
    large = router.route(Query("x", spent_usd=12345.6))
    assert "has spent $12,345.6 of" in str({row.reason for row in large.candidates()})


def test_a_model_that_is_denied_does_not_count_as_the_cheapest():
    router = Router(with_defences("{budget_usd: 0.5}"), Demanding(), today=lambda: TODAY)
    models = pool(with_defences("{}"), today=TODAY)
    first, second = (models.ids[i] for i in np.argsort(models.cost)[:2])
    query = Query("x", spent_usd=2.0, deny=frozenset({first}))
    assert router.route(query).model == second


def test_what_was_spent_comes_with_the_request():
    check_fields({"spent_usd": 0.25})
    assert limits_of({"spent_usd": 0.25})["spent_usd"] == 0.25
    with pytest.raises(BadFieldError, match="USD"):
        check_fields({"spent_usd": -1})


def test_the_replay_caps_as_the_router_does():
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.replay.sweep import sweep_catalog

    evalset = load_evalset(Path("sample_data/console_demo"))
    catalog = load_catalog(Path("catalog/paper_five.yaml"))
    scores = np.ones((evalset.n, 4))
    capped = replace(catalog, policy=replace(catalog.policy, defences=Defences({"tool_use": 0.0})))
    data = sweep_catalog(evalset, capped, scores, today=TODAY).data
    assert (data.requirements[:, 3] == 0).all()
    assert (data.requirements[:, :3] == 1).all()
