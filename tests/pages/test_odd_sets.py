"""Sets that leave figures open: one cluster, nothing resolved. Every page says so in words."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest

from hydra_core.console import cache
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import load_scores, save_scores
from tests.evalsets.test_evalset import rewrite_part
from tests.pages.store_steps import shown

PAGES = [
    "pages/operate/home.py",
    "pages/decide/tune.py?part=by-hand",
    "pages/decide/compare.py",
    "pages/configure/catalog.py?part=models",
    "pages/configure/catalog.py?part=policy",
    "pages/configure/eval_sets.py?part=sets",
    "pages/configure/eval_sets.py?part=routing-help",
]


def kept(workspace, name, resolved, price=1.0):
    """Six scored translations of one task, in one cluster."""
    shipped = cache.evalset(next(one for one in cache.evalsets() if one.key == "console_demo"))
    quality = shipped.quality[:6] if resolved else np.zeros_like(shipped.quality[:6])
    made = save_evalset(
        workspace / "evalsets" / name, name=name, queries=shipped.queries.head(6),
        models=shipped.models, quality=quality, cost_usd=price * shipped.cost_usd[:6],
    )  # fmt: skip
    bundle = cache.bundle()
    scores = load_scores(shipped, bundle.fingerprint)[:6]
    save_scores(made, bundle.fingerprint, bundle.dimensions, scores)


@pytest.mark.parametrize("name", ["one_cluster", "unresolved"])
@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_known_is_said(open_page, workspace, page, name):
    kept(workspace, name, resolved=name == "one_cluster")
    app = open_page(page, set=f"my/{name}", catalog="paper_five")
    assert not app.exception
    told = shown(app) + " ".join(f"{one.value} {one.delta}" for one in app.metric)
    assert not re.search(r"\b(nan|inf)\b", told)


def test_a_pin_that_costs_nothing_is_compared_in_dollars(open_page, workspace):
    kept(workspace, "free", resolved=True, price=0.0)
    link = {"set": "my/free", "catalog": "paper_five", "pin": "0.3", "pin_w": "1,1,1,1"}
    app = open_page("pages/decide/tune.py?part=by-hand", **link)
    assert not app.exception
    pinned = next(line for line in shown(app).splitlines() if line.startswith("Pinned τ 0.3"))
    assert pinned.endswith("pp at $0 per query.")


@pytest.mark.parametrize("lacking", ["texts", "costs"])
def test_a_set_that_cannot_be_replayed_is_offered_no_catalog(open_page, workspace, lacking):
    kept(workspace, "odd", resolved=True, price=np.nan if lacking == "costs" else 1.0)
    if lacking == "texts":
        folder = workspace / "evalsets" / "odd"
        shutil.rmtree(folder / "scores")
        queries = pd.read_parquet(folder / "queries.parquet").drop(columns="text")
        rewrite_part(folder, "queries.parquet", queries)
    why = {"texts": "It has no texts to score", "costs": "outcomes without costs"}[lacking]
    link = {"set": "my/odd", "catalog": "paper_five"}
    for page in (PAGES[1], PAGES[-1]):
        app = open_page(page, **link)
        assert not app.exception
        told = " ".join(box.value.replace("\\", "") for box in (*app.warning, *app.info))
        assert why in told
        assert "make_catalog.offer" not in [button.key for button in app.button]
    home = shown(open_page(PAGES[0], **link))
    assert ("Tune says why" in home) == (lacking == "costs")
