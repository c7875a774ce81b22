"""Tune, Learned: four sources side by side, and one click takes one into the draft."""

import pytest

from hydra_core.base.types import Rule, SuccessSource
from hydra_core.base.workspace import workspace_folder
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.sources import ladder as ladders
from hydra_core.console import cache, replays
from hydra_core.console.access import identity
from hydra_core.console.tune.ladder import in_force
from tests.console.valued import LINK, valued
from tests.pages.finishing import finished

pytestmark = pytest.mark.slow
PAGE = "pages/decide/tune.py?part=learned"
NAMES = ("Benchmark profiles", "Fitted profiles", "Success profiles", "Success heads")


@pytest.fixture
def app(open_page):
    valued(workspace_folder(), n=600)
    return finished(open_page(PAGE, **LINK))


def ladder():
    return next(v.result for k, v in replays.tasks()._tasks.items() if k[0] == "ladder")


def draft():
    text = cache.store().drafts.find("my/valued", identity.actor()).text
    return parse_catalog(text, source="draft")


def test_the_table_has_every_source_as_it_was_judged(app):
    assert not app.exception
    shown = "\n".join(one.value.replace("\\", "") for one in app.markdown)
    found = {ladders.NAMES[one.kind]: one.lift for one in ladder().rungs}
    assert tuple(found) == NAMES
    for name, lift in found.items():
        assert f"**{name}**" in shown
        assert lift.mean.scaled(100.0).text("pp") in shown


def test_each_source_is_one_click_from_the_draft(app):
    taken = {}
    for kind in ("success", "profiles", "benchmarks", "heads"):
        app = finished(app.button(key=f"ladder.take.{kind}").click().run())
        assert not app.exception, kind
        assert not app.error, kind
        taken[kind] = draft()
        assert in_force(taken[kind]).value == kind
    assert taken["success"].success_source is SuccessSource.SUCCESS_PROFILES
    assert taken["profiles"].dimensions[-1] == "level"
    assert taken["benchmarks"].policy.rule is Rule.SHORTFALL
    assert "level" not in taken["benchmarks"].dimensions
    assert taken["heads"].success_source is SuccessSource.OUTCOME_MODEL


def test_heads_are_compared_at_the_price_of_their_tokens_as_the_others_are(open_page):
    valued(workspace_folder())
    path = workspace_folder() / "catalogs" / "valued.yaml"
    document = CatalogDocument.parse(path.read_text(encoding="utf-8"))
    for model in parse_catalog(document.text(), "valued").models:
        document.set("models", model.id, "latency_s", 2.0)
    document.set("policy", "second_usd", 5.0)
    path.write_text(document.text(), encoding="utf-8")
    app = finished(open_page(PAGE, **LINK))
    assert not app.exception
    assert ladder().rung(ladders.Kind.HEADS).cross_fitted.predicted.cost_usd.max() < 5.0


def test_one_box_says_that_groups_are_traffic_for_the_ladder_and_for_learning(app):
    """The set's groups are asked about once."""
    (box,) = [one for one in app.checkbox if "groups are real kinds" in one.label]
    assert not [one for one in app.toggle if "groups" in one.label]
    assert not box.value
    app = finished(box.check().run())
    assert not app.exception
    assert [k[-1] for k in replays.tasks()._tasks if k[0] == "ladder"] == [False, True]
