"""Live, part Log: the log that is read becomes an eval set in one click, after saying its use."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import load_catalog
from hydra_core.evalsets.evalset import load_evalset
from tests.live.logs import decision, traffic

PAGE = "pages/operate/live.py?part=log"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A function that writes a log of 60 answers, by two models in turn."""

    def written(texts=True, rated=3):
        catalog = load_catalog(CATALOGS / "paper_five.yaml")
        ids, rng = tuple(model.id for model in catalog.models), np.random.default_rng(0)
        now = datetime.now(UTC)
        rows = [
            decision(
                i, requirements=tuple(rng.uniform(0, 0.4, 4)), at=now - timedelta(seconds=60 - i),
                catalog=catalog.name, catalog_digest=catalog.digest, arm="main", candidates=ids,
                predictor=catalog.predictor_fingerprint, chosen=ids[i % 2], served=ids[i % 2],
                propensities=(1.0,) + (0.0,) * (len(ids) - 1), shortfalls=(0.0,) * len(ids),
                text=f"Rename the variable number {i} in this file" if texts else None,
            )
            for i in range(60)
        ]  # fmt: skip
        folder = tmp_path / "decisions"
        traffic(folder, rows, {f"d{i}": float(i % 2) for i in range(0, 60, rated)} if rated else {})
        monkeypatch.setenv("HYDRA_LOG", str(folder))
        return ids

    return written


def test_one_click_makes_the_set_that_was_announced(open_page, log, workspace):
    ids = log()
    app = open_page(PAGE)
    assert not app.exception
    assert [one.value for one in app.metric] == ["60", "60", "20", "20"]
    said = " ".join(one.value for one in app.markdown)
    assert f"{ids[0]} 10, {ids[1]} 10" in said
    assert "Not good for: comparing models" in said
    app.button(key="log.make").click().run()
    assert not app.exception
    (folder,) = (workspace / "evalsets").glob("[!.]*")
    made = load_evalset(folder)
    assert len(made.query_ids) == 20
    assert (~np.isnan(made.quality)).sum() == 20
    assert app.title[0].value == "Eval sets"


def test_without_messages_it_says_what_to_start(open_page, log):
    log(texts=False)
    app = open_page(PAGE)
    assert any("--log-text" in one.value for one in app.info)
    assert not [one for one in app.button if one.key == "log.make"]


def test_without_feedback_it_says_where_it_goes(open_page, log):
    log(rated=0)
    app = open_page(PAGE)
    assert any("/v1/outcomes" in one.value for one in app.info)
    assert not [one for one in app.button if one.key == "log.make"]


def test_a_time_without_requests_asks_for_a_longer_one(open_page, tmp_path, monkeypatch):
    long_ago = datetime.now(UTC) - timedelta(days=40)
    traffic(tmp_path / "decisions", [decision(0, at=long_ago, text="Rename it")])
    monkeypatch.setenv("HYDRA_LOG", str(tmp_path / "decisions"))
    app = open_page(PAGE)
    assert not app.exception
    assert any("Choose a longer one" in one.value for one in app.info)


def test_a_set_of_one_outcome_a_query_leads_to_collecting(open_page, log, workspace):
    log()
    app = open_page(PAGE)
    app.button(key="log.make").click().run()
    (folder,) = (workspace / "evalsets").glob("[!.]*")
    link = {"set": f"my/{folder.name}", "catalog": "paper_five"}
    app = open_page("pages/configure/eval_sets.py?part=routing-help", **link)
    assert not app.exception
    assert [one.proto.label for one in app.get("page_link")] == ["Have every model answer a sample"]
