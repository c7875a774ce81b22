"""Learn from app.py: the answer first, what it says is what was learned, one click to the draft."""

import pytest

from hydra_core.base.types import Rule
from hydra_core.base.workspace import workspace_folder
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.lift import ends
from hydra_core.choosing.sources.ladder import Kind, Ladder
from hydra_core.console import cache, replays
from hydra_core.console.access import identity
from hydra_core.console.tune.view_learned import headline
from hydra_core.outcome_model.format import MANIFEST, catalog_outcome_model, load_outcome_model
from tests.pages.finishing import finished

pytestmark = pytest.mark.slow

PAGE = "pages/decide/tune.py?part=learned"
LINK = {"set": "console_demo", "catalog": "paper_five"}
#: Two models and few steps keep the test short; the demo's outcomes are simulated.
MODELS = ["gpt-5.4-mini", "gpt-5.4"]


def choose_models(app):
    return app.pills[0].set_value(MODELS).run()


@pytest.fixture
def learned(open_page):
    """The page with two models learned."""
    app = choose_models(open_page(PAGE, **LINK))
    app.button(key="learn.start").click().run()
    return finished(app)


def test_before_learning_it_says_what_it_would_do(open_page):
    app = open_page(PAGE, **LINK)
    assert not app.exception
    assert any("cross-fitted" in one.value for one in app.markdown)
    assert not app.button(key="learn.start").disabled


def test_one_model_alone_is_refused_with_the_remedy(open_page):
    app = open_page(PAGE, **LINK)
    app.pills[0].set_value(MODELS[:1]).run()
    app.button(key="learn.start").click().run()
    app = finished(app)
    assert "at least two" in app.error[0].value


def test_a_catalog_of_another_bundle_is_refused(open_page):
    app = open_page(PAGE, set="paper_swebench", catalog="paper_five_published")
    app.button(key="learn.start").click().run()
    assert "rebind" in app.error[0].value
    assert not (workspace_folder() / "outcome_models").exists()


def test_a_set_without_the_catalogs_models_leads_to_a_catalog_of_its_own(open_page):
    app = open_page(PAGE, set="console_demo", catalog="matched_three")
    assert not app.exception
    assert "none of the catalog's models" in app.warning[0].value
    app.button(key="make_catalog.offer").click().run()
    assert app.session_state["make_catalog.set"] == "console_demo"


def test_the_answer_comes_first_and_goes_into_the_draft(learned):
    app = learned
    assert not app.exception
    (folder,) = (workspace_folder() / "outcome_models").iterdir()
    title, sentence = headline(load_outcome_model(folder))[1:]
    boxes = [*app.info, *app.success]
    assert (title, sentence) in [(one.proto.title, one.value.replace("\\", "")) for one in boxes]
    assert app.metric[0].label == "At 25 % of the cost range"
    app.button(key="ladder.take.heads").click().run()
    assert not app.error
    draft = cache.store().drafts.find("paper_five", identity.actor())
    catalog = parse_catalog(draft.text, source="draft")
    assert catalog.policy.rule is Rule.VALUE
    assert catalog.policy.value_usd > 0
    assert catalog_outcome_model(catalog).models == tuple(MODELS)


def test_the_ladder_says_of_heads_what_learning_says(learned):
    (folder,) = (workspace_folder() / "outcome_models").iterdir()
    figures = load_outcome_model(folder).figures
    assert not finished(learned.run()).exception
    done = [task.result for task in replays.tasks()._tasks.values()]
    rung = [one.rung(Kind.HEADS) for one in done if isinstance(one, Ladder)][-1]
    assert rung.lift.mean.value == pytest.approx(figures["lift"]["mean"], abs=1e-12)
    assert ends(rung.lift.mean) == pytest.approx(figures["lift"]["interval"], abs=1e-12)
    assert (rung.recommend, rung.reason) == (figures["recommend"], figures["reason"])


def test_every_question_has_its_answer(learned):
    app = learned
    for part in ("What it reads", "More outcomes", "Groups and languages", "Other routers"):
        app.session_state["learn.part"] = part
        app = finished(app.run())
        assert not app.exception, part
        assert not app.error, part


def test_what_was_learned_is_never_learned_over(learned):
    (folder,) = (workspace_folder() / "outcome_models").iterdir()
    before = (folder / MANIFEST).read_bytes()
    replays.tasks()._tasks.clear()  # as after a new start
    button = learned.button(key="learn.start")
    assert button.disabled
    button.proto.disabled = False  # a browser would not send this; a forged message can
    app = button.click().run()
    assert not app.exception
    assert replays.tasks().get(("learn", folder)) is None
    assert (folder / MANIFEST).read_bytes() == before


def test_what_the_command_line_learned_is_found_under_its_own_name(learned):
    (folder,) = (workspace_folder() / "outcome_models").iterdir()
    folder.rename(folder.with_name("mine"))
    (folder.with_name("broken")).mkdir()
    (folder.with_name("broken") / MANIFEST).write_bytes(
        (folder.with_name("mine") / MANIFEST).read_bytes()
    )
    app = finished(learned.run())
    assert app.button(key="learn.start").disabled
    assert "Success heads" in [one.value for one in app.subheader]


def test_without_heads_the_ladder_does_not_say_keep_the_mix(open_page):
    app = finished(choose_models(open_page(PAGE, **LINK)))
    titles = [one.proto.title for one in (*app.info, *app.success)]
    assert "Keep the fixed mix" not in titles
