"""A conversation played through the real router: which model each turn gets, why, at what cost."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.tokens import IMAGE_TOKENS
from hydra_core.base.types import StickyMode
from hydra_core.console.inspect.conversation import Memo
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.conversations.conversation import (
    COMPACTED_SHARE,
    Event,
    Options,
    play,
)
from hydra_core.routing.conversations.messages import Conversation, Turn
from hydra_core.routing.sessions import assumed_cache
from tests.routing.conftest import make_catalog, spec

WORDS = {"easy": 0.1, "medium": 0.4, "hard": 0.8}


class ByWord:
    """Scores a message by the difficulty it names."""

    def __init__(self):
        self.asked = 0

    def predict(self, texts, turns=None, contexts=None):
        self.asked += len(texts)
        scores = np.array([[WORDS.get(text, 0.0)] * 4 for text in texts])
        return Prediction(scores, np.full(len(texts), 1), np.zeros(len(texts), dtype=bool))


def chat(*texts, tools=False):
    return Conversation("", tuple(Turn(text, 0, "answer here", "") for text in texts), tools)


def count(text):
    return len(text.split())


def run(conversation, mode=StickyMode.PER_SESSION, catalog=None, **options):
    return play(catalog or make_catalog(), ByWord(), conversation, Options(mode, **options), count)


def models(one):
    return [turn.model for turn in one.turns]


def events(one):
    return [turn.event for turn in one.turns]


def test_a_session_keeps_its_first_model():
    one = run(chat("easy", "hard", "medium"))
    assert models(one) == ["cheap"] * 3
    assert events(one) == [Event.FIRST, Event.KEPT, Event.KEPT]
    assert one.switches == 0


def test_per_request_routes_every_turn():
    one = run(chat("easy", "hard", "hard", "medium"), StickyMode.PER_REQUEST)
    assert models(one) == ["cheap", "strong", "strong", "mid"]
    assert events(one) == [Event.FIRST, Event.CHANGED, Event.SAME, Event.CHANGED]
    assert one.switches == 2


def test_per_content_keeps_an_unchanged_history():
    assert models(run(chat("easy", "hard"), StickyMode.PER_CONTENT)) == ["cheap", "cheap"]


@pytest.mark.parametrize("mode", [StickyMode.PER_SESSION, StickyMode.PER_CONTENT])
def test_a_compaction_routes_anew_and_shrinks_the_history(mode):
    one = run(chat("easy", "hard", "medium"), mode, compacted=frozenset({2}))
    assert models(one) == ["cheap", "strong", "strong"]
    assert "compacted" in one.turns[1].why
    assert one.turns[1].tokens.history == round(COMPACTED_SHARE * (1 + 2))
    assert not one.turns[1].cost.cached


def test_an_image_moves_to_a_model_that_can_see_and_stays_in_the_history():
    catalog = make_catalog(spec("cheap", 1, 0.9), spec("seeing", 3, 0.9, vision=True))
    one = run(chat("easy", "easy", "easy"), catalog=catalog, images=frozenset({2}))
    assert models(one) == ["cheap", "seeing", "seeing"]
    assert [turn.has_image for turn in one.turns] == [False, True, True]
    assert "vision" in one.turns[1].why
    assert one.turns[1].tokens.message == 1 + IMAGE_TOKENS


def test_an_image_that_no_model_can_see_is_refused_and_the_conversation_goes_on():
    one = run(chat("easy", "easy", "easy"), images=frozenset({2}), compacted=frozenset({3}))
    assert models(one) == ["cheap", None, "cheap"]
    assert one.turns[1].event is Event.REFUSED
    assert "HTTP 400" in one.turns[1].why
    assert one.turns[1].cost is None
    assert one.cost_usd == sum(turn.cost.cost_usd for turn in one.turns if turn.cost)


def test_a_model_that_falls_ill_is_left_and_the_reason_told():
    one = run(chat("easy", "easy", "easy"), health={"cheap": 0.05}, health_from=2)
    assert models(one) == ["cheap", "mid", "mid"]
    assert "below the floor" in one.turns[1].why
    assert events(one)[2] is Event.KEPT


def test_a_conversation_too_long_for_its_model_moves_on():
    catalog = make_catalog(spec("small", 1, 0.9, context_window=1_000), spec("large", 3, 0.9))
    one = run(chat("easy", "easy " * 2_000), catalog=catalog)
    assert models(one) == ["small", "large"]
    assert "ontext window" in one.turns[1].why


def test_tools_leave_only_models_that_can_use_them():
    catalog = make_catalog(spec("plain", 1, 0.9, tools=False), spec("handy", 3, 0.9))
    assert models(run(chat("easy", tools=True), catalog=catalog)) == ["handy"]


def test_what_stands_around_the_messages_is_read_and_gated_as_in_serve():
    can = {"vision": True, "lacks": frozenset({"audio"})}
    catalog = make_catalog(spec("deaf", 1, 0.9, **can), spec("keen", 3, 0.9, vision=True))
    turns = (Turn("easy", harness_tokens=40), Turn("easy"))
    said = Conversation("be brief", turns, images=1, unread_tokens=500, needs=frozenset({"audio"}))
    one = run(said, catalog=catalog)
    assert models(one) == ["keen", "keen"]
    assert one.turns[0].tokens.history == 2 + IMAGE_TOKENS + 500
    assert one.turns[0].tokens.message == 1 + 40
    assert one.turns[0].has_image


def test_costs_follow_from_prices_tokens_and_the_warm_cache():
    catalog = assumed_cache(make_catalog(spec("one", 10, 0.9)), 0.1)
    one = run(chat("easy", "easy"), catalog=catalog)
    first, second = (turn.cost for turn in one.turns)
    assert first.cost_usd == pytest.approx((1 + 2) * 10e-6)
    assert second.cost_usd == pytest.approx((3 * 0.1 + 1 + 2) * 10e-6)
    assert one.cached_tokens == 3
    assert one.cost_usd == pytest.approx(first.cost_usd + second.cost_usd)


def test_what_switches_cost_is_counted():
    catalog = assumed_cache(make_catalog(), 0.1)
    one = run(chat("easy", "hard"), StickyMode.PER_REQUEST, catalog)
    assert one.lost_usd == pytest.approx(3 * 0.9 * 9e-6)
    assert run(chat("easy", "hard"), catalog=catalog).lost_usd == 0.0


def test_an_assumed_cached_price_does_not_replace_a_named_one():
    catalog = assumed_cache(
        make_catalog(spec("named", 10, 0.9, cached_input_usd_per_mtok=5.0), spec("not", 10, 0.9)),
        0.1,
    )
    assert [model.cached_input_usd_per_mtok for model in catalog.models] == [5.0, 1.0]


def test_an_answer_that_is_not_there_is_counted_as_assumed():
    one = run(Conversation("", (Turn("easy"),)), answer_tokens=lambda model, query: 50)
    assert one.turns[0].tokens.answer == 50


def test_below_the_sticky_threshold_the_model_stays():
    catalog = make_catalog(threshold=0.5)
    one = run(chat("hard", "easy"), StickyMode.PER_REQUEST, catalog)
    assert models(one) == ["strong", "strong"]
    assert one.turns[1].event is Event.KEPT


def test_a_memo_scores_each_turn_once_for_all_modes():
    scorer = ByWord()
    conversation = chat("easy", "hard", "medium")
    memo = Memo(scorer)
    played = [play(make_catalog(), memo, conversation, Options(m), count) for m in StickyMode]
    assert scorer.asked == 3
    assert models(played[0]) == ["cheap", "strong", "mid"]


def test_playing_changes_nothing_and_repeats_itself():
    catalog = make_catalog()
    before = replace(catalog)
    first, again = (run(chat("easy", "hard"), catalog=catalog) for _ in range(2))
    assert catalog == before
    assert models(first) == models(again)
    assert first.cost_usd == again.cost_usd


def test_what_is_remembered_is_all_that_the_predictor_said():
    """The value rule reads the vectors; without them every turn would be refused."""

    class Telling(ByWord):
        def predict(self, texts, turns=None, contexts=None):
            n = len(texts)
            whole = super().predict(texts, turns)
            return replace(
                whole, ignored=np.full(n, 3), vectors=np.ones((n, 5)), distances=np.full(n, 0.5)
            )

    memo = Memo(Telling())
    found = memo.predict(["easy", "hard"], [1, 2])
    assert found.vectors.shape == (2, 5)
    assert found.ignored.tolist() == [3, 3]
    assert found.distances.tolist() == [0.5, 0.5]
    assert Memo(ByWord()).predict(["easy"]).vectors is None
