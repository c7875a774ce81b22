"""The report: the policy in force, what it says, and that it needs nothing else."""

import json

import pytest

from hydra_core.base.json_values import json_text
from hydra_core.console import reports as reporting
from hydra_core.replay.report import evaluation_html
from tests.pages.pairs import paper_sweep

PAPER = {"set": "paper_swebench", "catalog": "paper_five_published"}


@pytest.mark.parametrize("page", ["pages/operate/home.py", "pages/decide/compare.py"])
def test_the_page_offers_both_files(open_page, page):
    app = open_page(page, **PAPER)
    assert not app.exception
    labels = [element.proto.label for element in app.get("download_button")]
    assert {"HTML report", "JSON report"} <= set(labels)


def test_the_report_tells_the_policy_in_force(workspace):
    told = reporting.contents(paper_sweep(), 0.5, "other queries")
    assert told["policy"]["tau"] == 0.5
    assert told["policy"]["tuned_on"] == "other queries"
    assert told["fingerprints"]["synthetic"]
    json.loads(json_text(told))
    page = evaluation_html(told)
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
