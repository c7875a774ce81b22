"""Sets that leave figures open: one cluster, nothing resolved. Every page says so in words."""

import re

import numpy as np
import pytest

from hydra_core.console import cache
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.evalsets.scores import load_scores, save_scores
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
