"""Home: the operator's own before samples, one result with its interval, and what to do next."""

import shutil
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from hydra_core.catalog import load_catalog
from hydra_core.console import widgets
from hydra_core.store import Actor, Role
from tests.console.valued import valued
from tests.evalsets.test_evalset import rewrite_part
from tests.live.logs import decision, traffic
from tests.made_once import made_once
from tests.pages.store_steps import opened, shown

HOME = "pages/operate/home.py"


@pytest.fixture
def own(workspace):
    """A workspace with a set and a catalog of the operator's own."""
    learned = made_once("valued", lambda folder: valued(folder, 200))
    shutil.copytree(learned, workspace, dirs_exist_ok=True)
    return workspace


def publish(workspace, note="Haiku is cheaper now"):
    text = (workspace / "catalogs" / "valued.yaml").read_text(encoding="utf-8")
    ana = Actor("Ana", Role.PUBLISHER)
    opened(workspace).publish("my/valued", text, actor=ana, base_revision=0, note=note)


def test_samples_are_called_samples(open_page):
    text = shown(open_page(HOME))
    assert "Nothing of your own is published yet" in text
    assert "this console does not see any traffic" in text


def test_the_operators_own_pool_opens_first_with_the_set_that_fits_it(own, open_page):
    app = open_page(HOME)
    assert not app.exception
    text = shown(app)
    assert "**my/valued**, not published yet" in text
    assert "with catalog **my/valued**" in text
    assert "Nothing of your own" not in text
    for page in ("pages/configure/catalog.py?part=models", "pages/decide/releases.py?part=publish"):
        other = open_page(page)
        assert not other.exception
        assert not other.error
        chosen = {box.label: box.value for box in other.selectbox}
        assert chosen["Catalog"] == "my/valued"
        assert chosen["Eval set"] == "my/traffic"


def test_what_is_published_is_named_with_its_author_and_note(own, open_page):
    publish(own)
    text = shown(open_page(HOME))
    assert "**my/valued**, revision 1" in text
    assert "Published by Ana on" in text
    assert "Haiku is cheaper now" in text


@pytest.mark.parametrize("same", [True, False])
def test_the_traffic_of_a_day_says_which_text_decided_it(own, open_page, same):
    publish(own)
    # the same text under a name that comes first, and is not what the log names
    (own / "catalogs" / "alike.yaml").write_text((own / "catalogs" / "valued.yaml").read_text())
    catalog = load_catalog(own / "catalogs" / "valued.yaml")
    ids = tuple(model.id for model in catalog.models)
    facts = {"catalog": catalog.name, "catalog_digest": catalog.digest if same else "0" * 64,
             "revision": "1", "arm": "main", "predictor": catalog.predictor_fingerprint,
             "candidates": ids, "propensities": (1.0,) + (0.0,) * (len(ids) - 1), "chosen": ids[0],
             "served": ids[0], "shortfalls": (0.0,) * len(ids)}  # fmt: skip
    now = datetime.now(UTC)
    rows = [decision(i, at=now - timedelta(minutes=40 - i), **facts) for i in range(30)]
    old = [decision(i + 90, at=now - timedelta(days=3), **facts) for i in range(5)]
    traffic(own / "log", [*old, *rows], {})
    text = shown(open_page(HOME))
    assert "**30 requests" in text
    assert f"{ids[0]} 100 %" in text
    said = "my/valued, revision 1" if same else f"a text of {catalog.name} that this console"
    assert f"The newest decision used {said}" in text


def test_the_result_is_one_sentence_with_its_interval(open_page):
    app = open_page(HOME, set="mixed_2024", catalog="mixed_2024")
    box, heads = [one.value.replace("\\", "") for one in app.success if "interval" in one.value]
    assert "against 75.7 % with the router (+2.3 points, 95 % interval" in box
    assert "with the router (+3.7 points, 95 % interval" in heads
    assert box.count(". ") <= 1  # two sentences at most


def test_queries_that_the_figures_leave_out_are_counted(own, open_page):
    folder = own / "evalsets" / "traffic"
    rows = pd.read_parquet(folder / "outcomes.parquet")
    rewrite_part(folder, "outcomes.parquet", rows.drop(index=rows.index[-1]))
    text = shown(open_page(HOME, set="my/traffic", catalog="paper_five")).replace("\\", "")
    assert "1 query lacks an outcome or cost of some model: left out." in text


def test_a_set_without_texts_is_not_offered_to_be_scored(own, open_page):
    folder = own / "evalsets" / "traffic"
    queries = pd.read_parquet(folder / "queries.parquet")
    rewrite_part(folder, "queries.parquet", queries.drop(columns="text"))
    shutil.rmtree(folder / "scores")
    assert "Score an eval set" not in shown(open_page(HOME))
    app = open_page("pages/configure/eval_sets.py", set="my/traffic")
    assert "no predictor can score it" in " ".join(box.value for box in app.info)
    assert "eval_sets.score" not in [button.key for button in app.button]


def test_every_term_is_explained_in_one_sentence(open_page):
    helps = "\n".join(one.proto.help for one in [*open_page(HOME).caption])
    for term in ("τ (tau)", "**V**", "Quality retention (QR)", "**Fixed mix**"):
        (line,) = [line for line in helps.split("\n") if term in line]
        assert line.count(".") == 1


def test_a_catalog_with_the_same_models_changes_no_colour(own, open_page):
    before = widgets._model_order(str(own))
    path = own / "catalogs" / "valued.yaml"
    shutil.copy(path, path.with_name("another.yaml"))
    widgets._model_order.clear()
    assert widgets._model_order(str(own)) == before
