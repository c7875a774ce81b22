"""The table of a model card holds the figures of the verb `probe`, and is all that is written."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.lab.robustness.attack import set_messages
from hydra_core.lab.robustness.findings import TAUS, attack_table, bound_catalog, probed, routed
from hydra_core.lab.training.ship.card import demo_attacks, refresh_card, with_claims
from hydra_core.predictor.bundle import SHIPPED, SHIPPED_SMALL, load_bundle
from hydra_core.predictor.onnx_predictor import default_predictor
from tests.predictor.tiny_bundle import make_bundle

CATALOG = CATALOGS / "paper_five.yaml"
HEAD = "# Card\n\n### Parallel tasks\n\nAlike.\n\n"
TAIL = "\n### Reliability\n\n- reasoning: 0.1 -> 0.2\n"


def cells(table: str) -> list[list[str]]:
    """The rows of a Markdown table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> Path:
    """Four of the demo messages as an eval set of their own."""
    demo = load_evalset(SAMPLE_DATA / "console_demo")
    rows = np.arange(0, demo.n, 170)
    folder = tmp_path_factory.mktemp("sets") / "few"
    save_evalset(
        folder, name="few", queries=demo.queries.iloc[rows], models=demo.models,
        quality=demo.quality[rows], cost_usd=demo.cost_usd[rows],
    )  # fmt: skip
    return folder


def test_the_table_and_the_verb_say_the_same(few, capsys):
    predictor = default_predictor()
    found = probed(predictor, *set_messages(load_evalset(few)))
    table = cells(attack_table(routed(found, bound_catalog(CATALOG, predictor.bundle))))
    said = []
    for tau in TAUS:
        assert (
            main(["lab", "probe", str(few), "--catalog", str(CATALOG), "--tau", str(tau), "--json"])
            == 0
        )
        attacks = json.loads(capsys.readouterr().out)["attacks"]
        said += [(tau, one) for one in attacks if one["group"] == "all"]
    assert len(table) == len(said) == 2 * 2 * 9
    for row, (tau, one) in zip(table, said, strict=True):
        wording = {"localised": "own language", "english": "English"}[one["suffix"]]
        assert row[:4] == [str(tau), one["family"], wording, str(one["n"])]
        if one["n"]:
            assert row[4] == f"{one['success']:.1%}"
            assert row[6] == f"{one['cost_ratio']:.3f}"


@pytest.mark.parametrize("folder", [SHIPPED, SHIPPED_SMALL], ids=lambda path: path.name)
def test_a_shipped_card_and_manifest_name_the_same_worst_family(folder):
    bundle = load_bundle(folder)
    card = (folder / "MODEL_CARD.md").read_text("utf-8")
    section = card.partition("### Appended claims of difficulty")[2].partition("\n### ")[0]
    rows = cells(section)
    assert len(rows) == 2 * 2 * 9
    worst = max(float(row[4].rstrip("%")) for row in rows) / 100
    assert bundle.quality["suffix_attacks"]["worst_success"] == pytest.approx(worst, abs=6e-4)
    dearest = max(float(row[6]) for row in rows)
    assert bundle.quality["suffix_attacks"]["worst_cost_ratio"] == dearest
    (demo,) = set(re.findall(r"On the (\d+)\nmessages", section))
    assert int(demo) == load_evalset(SAMPLE_DATA / "console_demo").n


@pytest.fixture
def bundle(tmp_path):
    made = make_bundle(tmp_path / "tiny")
    (made.path / "MODEL_CARD.md").write_text(
        f"{HEAD}### Appended claims of difficulty\n\nold\n{TAIL}", "utf-8"
    )
    return make_bundle(made.path, other_files=["MODEL_CARD.md"])


def test_only_the_section_and_its_figures_are_written(bundle):
    from hydra_core.predictor.onnx_predictor import Predictor

    attacks = demo_attacks(Predictor(bundle), CATALOG, most=4)
    made = refresh_card(bundle, attacks)
    text = (made.path / "MODEL_CARD.md").read_text("utf-8")
    assert text.startswith(f"{HEAD}### Appended claims of difficulty\n\nSuccess")
    assert text.endswith(f"{attack_table(attacks)}\n{TAIL}")
    assert "old" not in text
    assert made.fingerprint == bundle.fingerprint
    assert made.files[made.model] == bundle.files[bundle.model]
    assert set(made.quality) == {*bundle.quality, "suffix_attacks"}
    again = refresh_card(made, attacks)
    assert (again.path / "MODEL_CARD.md").read_text("utf-8") == text


def test_a_card_without_the_section_is_left_as_it_is(bundle, tmp_path):
    shutil.copytree(bundle.path, tmp_path / "other")
    with pytest.raises(ValueError, match="Appended claims"):
        with_claims(HEAD, None)
