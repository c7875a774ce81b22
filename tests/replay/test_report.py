"""The report: one HTML file that opens offline, a JSON twin, nothing unescaped; the CLI verbs."""

import hashlib
import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.types import Selection
from hydra_core.cli.main import main
from hydra_core.cli.report import _result, _retained
from hydra_core.replay.evaluation import evaluate, evaluation_document
from hydra_core.replay.metrics import evaluate_choice
from hydra_core.replay.report import evaluation_html
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import verdict
from tests.replay.conftest import make_data

ROOT = Path(__file__).parents[2]
SET = ROOT / "sample_data" / "paper_swebench"
CATALOG = ROOT / "catalog" / "paper_five_published.yaml"
NAMES = [str(SET), "--catalog", str(CATALOG)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", "evaluation", *NAMES, "--out", str(out), "--tuned-on", "<b>x"]) == 0
    return out.read_text(encoding="utf-8"), json.loads(out.with_suffix(".json").read_text())


class Tags(HTMLParser):
    """Collects tags and checks that they are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("meta", "circle", "path", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_html_is_whole_and_needs_nothing_else(written):
    html, _ = written
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert {"svg", "table", "figure", "style"} <= tags.seen
    assert not {"script", "img", "link", "iframe"} & tags.seen
    assert not re.search(r"https?://|url\(", html)
    assert len(html) < 300_000


def test_the_html_says_what_matters(written):
    html, twin = written
    assert twin["verdict"]["text"] in html.replace("&#x27;", "'")
    assert "Synthetic: these outcomes were simulated" in html
    assert twin["fingerprints"]["evalset_sha256"] in html
    assert twin["fingerprints"]["catalog_sha256"] in html
    assert "promised less kept" in html


def test_what_comes_from_outside_is_escaped(written):
    html, _ = written
    assert "&lt;b&gt;x" in html
    assert "<b>x" not in html


def test_the_twin_holds_the_same_figures(written):
    _, twin = written
    assert twin["schema"] == "hydra.evaluation/v1"
    assert twin["n"] == 500
    assert len(twin["models"]) == 5
    low, high = twin["router"]["ci"]["qr"]
    assert low < twin["router"]["qr"] < high
    taus = [tau for tau, _, _ in twin["frontier"]]
    assert taus == sorted(taus)
    assert 0 < twin["verdict"]["detectable_difference"] < 0.2


def test_hostile_names_do_not_reach_the_page(written):
    _, twin = written
    evil = "<script>alert(1)</script>\"'&"
    twin = json.loads(json.dumps(twin))
    twin["fingerprints"]["evalset"] = evil
    twin["models"][evil] = twin["models"].popitem()[1]
    twin["notes"] = [evil]
    twin["languages"] = [{**one, "name": evil} for one in twin["languages"] * 2]
    html = evaluation_html(twin)
    assert "<script" not in html


def test_what_models_without_outcomes_leave_open_is_marked(written):
    _, twin = written
    twin = json.loads(json.dumps(twin))
    twin["router"]["unknown"] = twin["languages"][0]["unknown"] = 0.2
    twin["languages"] = twin["languages"] * 2
    twin["languages"][0]["p_value"] = twin["verdict"]["detectable_difference"] = None
    html = evaluation_html(twin)
    assert len(re.findall(r"<td>≥ \d", html)) == 4
    assert len(re.findall(r"<td>≤ \d", html)) == 1
    assert "nan" not in html
    assert "would show on this set" not in html


def test_a_tiny_set_has_a_report_without_a_cross_fit(tmp_path):
    from datetime import date

    from hydra_core.catalog import load_catalog, pool
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.evalsets.scores import load_scores
    from hydra_core.replay.replay import align

    catalog, evalset = load_catalog(CATALOG), load_evalset(SET)
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    data = align(evalset, scores, pool(catalog, today=date(2026, 1, 1)))
    few = data.take(data.rows[:6])
    made = datetime(2026, 1, 1, tzinfo=UTC)
    sweep = Sweep(evalset, catalog, few, catalog.policy.weights)
    found = evaluation_document(evaluate(sweep, 0.1), made=made)
    assert found["cross_fit"] is None
    assert "too small to tune" in evaluation_html(found)


def test_a_result_that_hangs_on_models_without_outcomes_is_not_known():
    data = make_data(100)
    found = verdict(data, np.arange(100) % 3, Selection.FIXED)
    same = replace(found, interval=replace(found.interval, lo=-0.5, hi=0.5))
    assert _result(same) == "no measurable difference"
    assert _result(replace(same, unknown=0.1)) == "not known"
    policy = evaluate_choice(data, np.zeros(100, dtype=int))
    shown = _retained(policy.qr, policy)
    assert _retained(policy.qr, replace(policy, unknown=0.1)) == f"≥ {shown}"


def test_portability_on_the_command_line(capsys):
    argv = ["report", "portability", *NAMES, "--event", "remove:gpt-5.4-mini"]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "nothing retrained" in out
    assert "remove gpt-5.4-mini" in out
    assert main([*argv, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["moved"] > 0
    assert main([*argv[:-1], "remove:nobody"]) == 2
    assert "the catalog has no 'nobody'" in capsys.readouterr().err


def test_ablation_on_the_command_line(capsys):
    assert main(["report", "ablation", *NAMES, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(one["kept"]) for one in found] == [4] + [3] * 4 + [2] * 6 + [1] * 4
    assert main(["report", "ablation", *NAMES]) == 0
    assert "reasoning + code_generation" in capsys.readouterr().out


@pytest.fixture
def one_cluster(tmp_path):
    """The sample with all its queries in one cluster, so that nothing has an interval."""
    folder = tmp_path / "one"
    shutil.copytree(SET, folder)
    file, settings = folder / "queries.parquet", folder / "evalset.yaml"
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    pd.read_parquet(file).assign(cluster="one").to_parquet(file)
    after = hashlib.sha256(file.read_bytes()).hexdigest()
    settings.write_text(settings.read_text().replace(before, after))
    return folder


@pytest.mark.parametrize("verb", ["evaluate", "report portability"])
def test_figures_without_an_interval_are_printed_without_one(verb, one_cluster, capsys):
    assert main([*verb.split(), str(one_cluster), "--catalog", str(CATALOG)]) == 0
    said = capsys.readouterr().out
    assert "nan" not in said
    assert "[one independent query gives no interval]" in said or " [–]" in said


def test_the_html_keeps_a_figure_that_has_no_interval(one_cluster, tmp_path):
    out = tmp_path / "r.html"
    arguments = [str(one_cluster), "--catalog", str(CATALOG), "--out", str(out)]
    assert main(["report", "evaluation", *arguments]) == 0
    router = json.loads(out.with_suffix(".json").read_text())["router"]
    assert f"<td>{100 * router['quality']:.1f}</td>" in out.read_text(encoding="utf-8")


def test_the_ablation_of_one_cluster_is_refused_in_words(one_cluster, capsys):
    assert main(["report", "ablation", str(one_cluster), "--catalog", str(CATALOG)]) == 2
    assert "all depend on each other" in capsys.readouterr().err
