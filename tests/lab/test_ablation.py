"""Other ways of reading are scored for real, and compared at the first one's cost."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import EvalSetError, MismatchError
from hydra_core.catalog.schema import load_catalog
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.lab.ablation import Reading, ablation, reading_ablation, readings
from hydra_core.predictor.bundle import load_bundle
from tests.evalsets.sets import saved
from tests.predictor.tiny_bundle import make_bundle

TODAY = date(2026, 1, 1)


@pytest.fixture
def world(tmp_path):
    make_bundle(tmp_path / "bundle")
    rng = np.random.default_rng(0)
    quality = (rng.random((40, 2)) < (0.9, 0.5)).astype(float)
    cost = np.tile([0.1, 0.01], (40, 1))
    queries = pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(40)],
            "text": [f"Sort the list number {i}" * (1 + i % 3) for i in range(40)],
            "language": "en",
        }
    )
    models = ("gpt-5", "gpt-5-mini")
    saved(tmp_path / "set", models=models, quality=quality, cost_usd=cost, queries=queries)
    bundle = load_bundle(tmp_path / "bundle")
    catalog = load_catalog(Path("catalog/matched_three.yaml"))
    kept = tuple(m for m in catalog.models if m.id in ("gpt-5", "gpt-5-mini"))
    return tmp_path, bundle, replace(catalog, models=kept)


def test_the_ways_are_the_bundle_fewer_tokens_and_no_prefix(world):
    bundle = replace(world[1], max_tokens=300)
    found = readings(bundle, [bundle])
    assert [way.bundle.max_tokens for way in found] == [300, 256, 128, 300, 300]
    assert [way.prefix for way in found] == [True, True, True, False, True]


def test_the_first_way_differs_from_itself_by_nothing(world):
    folder, bundle, catalog = world
    seen = []
    ways = [Reading("as it is", bundle), Reading("again", bundle)]
    found = reading_ablation(
        load_evalset(folder / "set"), catalog, ways, today=TODAY,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert [one.against_first.qr.value for one in found] == [0.0, 0.0]
    assert found[0].metrics == found[1].metrics
    assert found[0].pearson is None
    assert seen[-1] == (80, 80)


def test_labels_give_intrinsic_figures(world):
    folder, bundle, catalog = world
    evalset = load_evalset(folder / "set")
    queries = evalset.queries.copy()
    for i, name in enumerate(bundle.dimensions):
        queries[f"label_{name}"] = np.linspace(0, 1, len(queries)) ** (i + 1)
    found = reading_ablation(
        replace(evalset, queries=queries), catalog, [Reading("as it is", bundle)], today=TODAY
    )
    assert found[0].mae is not None
    assert 0 < found[0].mae < 1


def test_capabilities_by_hand_stay_on_their_bundle(world):
    folder, bundle, catalog = world
    first = replace(catalog.models[0], overrides={"reasoning": 0.5})
    by_hand = replace(catalog, models=(first, *catalog.models[1:]))
    with pytest.raises(MismatchError, match="set by hand"):
        reading_ablation(load_evalset(folder / "set"), by_hand, [Reading("x", bundle)], today=TODAY)


def test_a_set_without_texts_is_refused(world):
    folder, bundle, catalog = world
    evalset = load_evalset(folder / "set")
    bare = replace(evalset, queries=evalset.queries.drop(columns="text"))
    with pytest.raises(EvalSetError, match="set with texts"):
        reading_ablation(bare, catalog, [Reading("x", bundle)], today=TODAY)


def test_the_verb_prints_every_way(world, capsys):
    folder, _, _ = world
    arguments = ["lab", "ablate", str(folder / "set"), "--catalog", "catalog/matched_three.yaml"]
    arguments += ["--bundle", str(folder / "bundle"), "--against", str(folder / "bundle")]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n"] == 40
    assert found["readings"][0]["qr_difference"] == 0.0
    assert any(one["name"] == "no signal prefix" for one in found["readings"])


def test_more_dimensions_than_can_be_left_out_are_refused():
    seven = tuple(f"d{k}" for k in range(7))
    with pytest.raises(MismatchError, match="7 dimensions have too many subsets; at most 6"):
        ablation(None, seven, (1.0,) * 7, (), 0.1)
