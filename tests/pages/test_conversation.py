"""Conversation from app.py: what is played, what is changed, what is refused."""

import json

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.base.spelling import usd
from hydra_core.base.types import StickyMode
from hydra_core.catalog.schema import load_catalog
from hydra_core.console.inspect.view_conversation import alone, change, mode_table, scenes
from hydra_core.routing.conversations.conversation import Event, Simulation, TurnOutcome
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import TurnTokens
from tests.hostile_messages import MARKUP
from tests.pages.moving import to

PAGE = "pages/operate/inspect.py?part=conversation"


def said(app):
    return " ".join(element.value for element in [*app.markdown, *app.caption])


def values(app):
    return {metric.label: metric.value.replace("\\", "") for metric in app.metric}


@pytest.fixture
def page(open_page):
    app = open_page(PAGE)
    assert not app.exception
    assert not app.error
    return app


def paste(app, raw):
    app.segmented_control(key="conversation.kind").set_value("Paste").run()
    app.text_area(key="conversation.pasted").set_value(raw)
    app.button(key="conversation.go").click().run()
    assert not app.exception
    return app


@pytest.mark.parametrize("scene", [scene.id for scene in scenes()])
def test_every_shipped_conversation_plays(page, scene):
    page.selectbox(key="conversation.scene").set_value(scene).run()
    assert not page.exception
    assert set(values(page)) == {
        "Cost, estimated", "Every turn by itself", "Switches", "From the cache",
    }  # fmt: skip
    modes = ["Per session", "Adaptive", "Per content", "Per request"]
    assert page.table[0].value["Mode"].tolist() == modes


def test_a_session_does_not_switch_unless_something_forces_it(page):
    table = page.table[0].value.set_index("Mode")
    assert table.loc["Per session", "Switches"] == 0
    assert table.loc["Per session", "Cache lost"] == 0


def test_the_chosen_mode_changes_the_turns(page):
    assert ":green-badge[Kept]" in said(page)
    page.segmented_control(key="conversation.mode").set_value("per_request").run()
    assert ":green-badge[Kept]" not in said(page)


def test_a_compaction_and_an_image_appear_on_their_turns(page):
    page.multiselect(key="conversation.compacted").set_value([3]).run()
    page.multiselect(key="conversation.images").set_value([2]).run()
    assert not page.exception
    assert "Compacted" in said(page)
    assert "Image" in said(page)


def test_a_sick_model_is_left(page):
    sick = page.table[0].value.set_index("Mode").loc["Per session", "Models (turns)"]
    name = sick.replace("\\", "").split(" (")[0]
    page.slider(key=f"conversation.health.{name}").set_value(0.0).run()
    assert "below the floor" in said(page).replace("\\", "")
    assert int(values(page)["Switches"]) >= 1


def test_own_messages_are_played(page):
    raw = json.dumps([{"role": "user", "content": "Hello"}, {"role": "user", "content": "there"}])
    app = paste(page, raw)
    assert "Hello there" in said(app)


def test_a_pasted_transcript_is_played_and_a_missing_answer_costs_nothing(page):
    app = paste(page, "User: Prove that there are infinitely many primes.\nAssistant: Let p...")
    answered = values(app)["Cost, estimated"]
    app = paste(app, "User: Prove that there are infinitely many primes.")
    app.number_input(key="conversation.answer_tokens").set_value(0).run()
    assert "is left out of the costs" in said(app)
    assert float(values(app)["Cost, estimated"].strip("$")) < float(answered.strip("$"))


def test_a_missing_answer_is_counted_as_on_message(page):
    app = paste(page, "User: Prove that there are infinitely many primes.")
    assert "it is counted as the success profiles predict" in said(app)
    counted = values(app)["Cost, estimated"]
    app.number_input(key="conversation.answer_tokens").set_value(0).run()
    assert float(values(app)["Cost, estimated"].strip("$")) < float(counted.strip("$"))


@pytest.mark.parametrize("harness", ["", "<system-reminder>be brief </system-reminder>" * 40])
def test_one_turn_costs_what_the_message_costs(open_page, harness):
    text = f"{harness}Prove that there are infinitely many primes."
    app = open_page("pages/operate/inspect.py?part=message", catalog="paper_five", text=text)
    shown = app.table[0].value.set_index("Model")
    (model,) = shown.index[shown[""] == "Chosen"]
    app = paste(open_page(PAGE, catalog="paper_five"), f"User: {text}")
    assert values(app)["Cost, estimated"] == usd(shown.loc[model, "This message"])


def test_the_mode_that_is_shown_is_explained(page):
    assert "the first turn chooses the model" in said(page)
    page.segmented_control(key="conversation.mode").set_value("per_request").run()
    assert "every turn is routed by itself" in said(page)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("nonsense", "is not JSON"),
        ("[]", "no user message"),
        ('[{"role": "king", "content": "x"}]', "must be one of"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_conversation_is_refused_in_words(page, raw, told):
    app = paste(page, raw)
    assert told in app.error[0].value.replace("\\", "")
    assert "Nothing to play yet" in said(app)


def test_hostile_messages_are_shown_as_they_stand(page):
    turns = [
        message
        for text in MARKUP
        for message in (
            {"role": "user", "content": text},
            {"role": "assistant", "content": text},
        )
    ]
    app = paste(page, json.dumps(turns))
    assert not any(element.allow_html for element in app.markdown)
    assert r"\<script\>" in said(app)
    app.number_input(key="conversation.page").set_value(2).run()
    assert not app.exception


def test_a_conversation_goes_nowhere_but_this_page(page):
    assert {name: "".join(one) for name, one in page.query_params.items()} == {
        "part": "conversation"
    }


def test_a_file_can_be_uploaded(page):
    app = page.segmented_control(key="conversation.kind").set_value("Upload").run()
    assert not app.exception
    assert "Nothing to play yet" in said(app)
    raw = json.dumps({"messages": [{"role": "user", "content": "Hello from a file"}]})
    app.file_uploader(key="conversation.file").set_value(
        ("chat.json", raw.encode(), "application/json")
    ).run()
    assert not app.exception
    assert "Hello from a file" in said(app)


def test_a_conversation_that_no_model_can_serve_says_so_and_shows_no_cost(page):
    page.multiselect(key="conversation.images").set_value([1]).run()  # no model here sees images
    assert not page.exception
    (box,) = page.error
    assert box.proto.title == "No model can serve this conversation"
    assert "vision" in box.value or "image" in box.value
    assert not page.metric
    page.multiselect(key="conversation.images").set_value([4]).run()
    assert "No model can serve 2 of 5 turns" in page.warning[0].proto.title
    assert page.metric


def test_another_bundle_scores_the_conversation_anew(open_page):
    page = open_page(PAGE, catalog="paper_five")  # without success profiles: it can be rebound

    def scorer():
        memo, _ = page.session_state["conversation.scored"][1]
        return memo.predictor.bundle.path.name

    paste(page, "User: Fix the bug")
    before = scorer()
    to(page, "pages/operate/home.py").run()
    page.segmented_control(key="bundle.choice").set_value("modernbert").run()
    to(page, PAGE).run()
    page.button(key="bundle.rebind").click().run()
    assert not page.exception
    assert (before, scorer()) == ("default", "modernbert")


def test_a_cost_many_times_as_large_has_no_exponent():
    assert change(1.2345, 0.01) == "about 123 times as much"
    assert change(0.025, 0.01) == "150.0 % more"
    assert change(0.025, 0.0) == "instead of $0"
    assert change(0.0, 0.0) == "the same"


def test_a_kept_turn_is_compared_with_the_model_it_would_go_to():
    router = Router(load_catalog(CATALOGS / "mixed_2024.yaml"))
    needs = np.full(4, 0.3)
    best = router.decide(needs).model
    decision = router.decide(needs, Query("x", deny=frozenset({best})))
    kept = next(name for name in decision.pool.ids if name not in (best, decision.model))
    tokens = TurnTokens(0, 1, 1)
    one, other = (
        TurnOutcome(2, model, event, "", tokens, has_image=False, compacted=False, decision=made)
        for model, event, made in (
            (kept, Event.KEPT, None), (decision.model, Event.FIRST, decision),
        )
    )  # fmt: skip
    net = decision.valuation.net
    behind = 100 * (net[decision.index] - net[decision.pool.ids.index(kept)])
    assert f"{kept} is worth {behind:.1f} pp less here" in alone(one, other)


def test_models_with_equal_turns_stand_in_the_order_of_their_first_turn():
    names, tokens = [*"dbhfagec", "b"], TurnTokens(0, 1, 1)
    turns = tuple(
        TurnOutcome(
            i, name, Event.FIRST, "", tokens, has_image=False, compacted=False, decision=None
        )
        for i, name in enumerate(names, 1)
    )
    mode = StickyMode.PER_REQUEST
    (used,) = mode_table({mode: Simulation(mode, turns)})["models"]
    assert used == "b (2), d (1), h (1), f (1), a (1), g (1), e (1), c (1)"
