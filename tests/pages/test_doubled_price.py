"""A doubled output price on the pages: Tune, Compare, Catalog and Releases show what it costs."""

import pytest

from hydra_core.base.spelling import usd
from hydra_core.console import cache, replays
from tests.pages.store_steps import ANA, opened, shown
from tests.replay.test_doubled_price import SET, TEXT, doubled

NAME = "paper_five"
LINK = {"set": SET.name, "catalog": NAME}


@pytest.fixture
def costs(workspace, monkeypatch):
    """Cost per query by the published catalog and by the draft whose dearest model doubled."""
    monkeypatch.setenv("HYDRA_OPERATOR", ANA.name)
    store = opened(workspace)
    started = store.drafts.start(NAME, TEXT, actor=ANA, base_revision=0)
    store.drafts.save(started, doubled(), actor=ANA, unfinished=True)
    entry = next(one for one in cache.evalsets() if one.key == SET.name)
    catalogs = [cache.parsed(text, NAME)[0] for text in (TEXT, doubled())]
    return [replays.replayed(entry, one).metrics.mean_cost_usd.value for one in catalogs]


def told(app):
    assert not app.exception
    metrics = [f"{one.label} {one.value} {one.delta}" for one in app.metric]
    return "\n".join([shown(app), *metrics]).replace("\\", "")


@pytest.mark.parametrize(
    "page", ["configure/catalog.py?part=models", "decide/releases.py?part=publish"]
)
def test_the_draft_is_shown_with_its_new_cost(open_page, costs, page):
    text = told(open_page(f"pages/{page}", **LINK))
    assert usd(costs[1]) in text
    assert "do not change this set" not in text


@pytest.mark.parametrize("page", ["tune.py?part=by-hand", "compare.py"])
def test_what_is_published_is_shown_with_its_new_cost(open_page, costs, page):
    before, after = ((f"{usd(value)} ", f"${value:.4g} ") for value in costs)
    assert before != after
    cache.store().publish(NAME, doubled(), actor=ANA, base_revision=0, note="dearer", metrics={})
    text = told(open_page(f"pages/decide/{page}", **LINK))
    assert any(one in text for one in after)  # a tile's digits or a verdict's
    assert not any(one in text for one in before)
