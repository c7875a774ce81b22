"""Another router's decisions in the console: a point on Tune, a side in Compare."""

import shutil

import pandas as pd
import pytest

from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.imported_policies import save_policy
from tests.pages.conftest import ROOT

MINE = {"set": "my/mine", "catalog": "paper_five_published"}
DEAR, CHEAP = "gpt-5.4", "gpt-5.4-mini"


@pytest.fixture
def mine(workspace):
    folder = workspace / "evalsets" / "mine"
    shutil.copytree(ROOT / "sample_data" / "paper_swebench", folder)
    evalset = load_evalset(folder)
    save_policy(evalset, "always-dear", pd.Series([DEAR] * evalset.n))
    return evalset


def metrics(app):
    return {metric.label: metric.value.replace("\\", "") for metric in app.metric}


def test_tune_lists_it_among_the_policies(open_page, mine):
    app = open_page("pages/decide/tune.py?part=by-hand", **MINE)
    app.segmented_control(key="tune.details").set_value("Numbers").run()
    assert not app.exception
    rows = app.dataframe[-1].value.set_index("policy")
    assert rows.loc["always-dear", "detail"] == "imported policy"
    measures = ["quality", "cost", "qr", "misroute"]
    theirs, constant = rows.loc["always-dear", measures], rows.loc[f"Always {DEAR}", measures]
    assert theirs.tolist() == pytest.approx(constant.tolist())


def test_tune_says_which_policy_it_cannot_show(open_page, mine):
    (mine.path / "policies" / "torn.parquet").write_bytes(b"no table")
    app = open_page("pages/decide/tune.py?part=by-hand", **MINE)
    assert not app.exception
    assert any("torn" in one.value and "not shown" in one.value for one in app.caption)


def test_compare_takes_it_as_a_side_and_sees_a_new_import(open_page, mine):
    link = {**MINE, "a": f"always:{DEAR}", "b": "imported:always-dear"}
    app = open_page("pages/decide/compare.py", **link)
    assert app.selectbox(key="compare.b").value == "imported:always-dear"
    assert metrics(app)["Resolved by one only"] == "0 : 0"
    save_policy(mine, "always-dear", pd.Series([CHEAP] * mine.n), force=True)
    app.run()
    assert not app.exception
    assert metrics(app)["Resolved by one only"] != "0 : 0"
