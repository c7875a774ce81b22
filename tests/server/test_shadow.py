"""The verb shadow, on logs that a service wrote: the router's own routes, and what it refuses."""

import json
from datetime import timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.decision_log.reading import read_log
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.decision_log.writer import LogWriter, parquet_segments
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from tests.live.logs import AT, decision, levels
from tests.server.conftest import CATALOG, HARD, MODELS, asked
from tests.server.test_logging import make_time_for_flush
from tests.server.valued import value_catalog

TEXTS = (
    HARD,
    "hi",
    "Translate this sentence into German: the train is late",
    "Write a recursive descent parser for arithmetic with tests",
    "Why does this segfault only under load? Here is the core dump",
    "List three fruits",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("valued")


@pytest.fixture
def logged(make, tmp_path):
    """A log folder of the texts, decided by a catalog."""

    def log(catalog, **settings):
        place = tmp_path / "log"
        client = make(catalog=catalog, log=str(place), **settings)
        for text in TEXTS:
            assert client.post("/v1/decision", json=asked(text)).status_code == 200
        make_time_for_flush(place, len(TEXTS))
        return place

    return log


def asked_for(log, catalog, capsys, *more):
    assert main(["shadow", str(log), "--catalog", str(catalog), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def mix_of(catalog):
    """Share of the texts by model, as the router itself routes them."""
    router = Router(load_catalog(catalog), default_predictor())
    models = [router.route(Query(text)).model for text in TEXTS]
    return {model: models.count(model) / len(TEXTS) for model in models}


def test_the_same_catalog_agrees_and_another_one_has_its_own_mix(logged, tmp_path, capsys):
    log = logged(CATALOG)
    same = asked_for(log, CATALOG, capsys)
    assert (same["replayed"], same["agreement"][0]) == (len(TEXTS), 1.0)
    assert same["cost_change"] is None  # decisions alone have no tokens
    assert "feedback" in same["no_value_because"]
    other = tmp_path / "other.yaml"
    other.write_text(CATALOG.read_text().replace("tau: 0.24", "tau: 0"))
    assert asked_for(log, other, capsys)["mix"] == pytest.approx(mix_of(other))
    assert main(["shadow", str(log), "--catalog", str(other)]) == 0
    told = capsys.readouterr().out
    assert f"{len(TEXTS)} decisions replayed" in told
    assert "quality: not estimated" in told


def test_a_window_is_replayed_and_its_bill_is_compared(tmp_path, capsys):
    written(tmp_path / "log", load_catalog(CATALOG), 40)
    from_then = (AT + timedelta(seconds=10)).isoformat()
    until = (AT + timedelta(seconds=30)).isoformat()
    found = asked_for(tmp_path / "log", CATALOG, capsys, "--since", from_then, "--until", until)
    assert found["replayed"] == 20
    assert found["cost_change"][0] != found["cost_change_from_billed"][0]
    for wrong in ("yesterday", "999999d", "99999999999d"):
        with pytest.raises(SystemExit):
            main(["shadow", "x", "--catalog", str(CATALOG), "--since", wrong])
        assert f"'{wrong}' is no time" in capsys.readouterr().err


def test_another_worth_is_replayed_from_the_logged_predictions(logged, folder, capsys):
    log = logged(value_catalog(folder, value_usd=0.05))
    cheap, dear = (value_catalog(folder, value_usd=worth) for worth in (0.0005, 50.0))
    mixes = [asked_for(log, one, capsys)["mix"] for one in (cheap, dear)]
    assert mixes == [pytest.approx(mix_of(cheap)), pytest.approx(mix_of(dear))]
    assert mixes[0] != mixes[1]


def test_other_prices_need_the_messages(logged, folder, capsys):
    log = logged(value_catalog(folder, value_usd=0.05))
    dearer = folder / "dearer.yaml"
    text = value_catalog(folder, value_usd=0.05).read_text()
    assert "input_usd_per_mtok: 0.31" in text
    dearer.write_text(text.replace("input_usd_per_mtok: 0.31", "input_usd_per_mtok: 3.1"))
    assert main(["shadow", str(log), "--catalog", str(dearer)]) == 2
    assert "--log-text" in capsys.readouterr().err


def test_a_value_catalog_is_replayed_from_logged_messages(logged, folder, capsys):
    log = logged(CATALOG, log_text=True)
    catalog = value_catalog(folder, value_usd=0.05)
    assert asked_for(log, catalog, capsys)["mix"] == pytest.approx(mix_of(catalog))


def test_a_value_catalog_without_messages_is_refused_with_the_way_out(logged, folder, capsys):
    log = logged(CATALOG)
    catalog = value_catalog(folder, value_usd=0.05)
    assert main(["shadow", str(log), "--catalog", str(catalog)]) == 2
    told = capsys.readouterr().err
    assert f"{len(TEXTS)} decisions" in told
    assert "--log-text" in told
    assert "import log" in told


def test_a_log_of_an_earlier_version_is_read(tmp_path, capsys):
    catalog = load_catalog(CATALOG)
    written(tmp_path / "log", catalog, 50)
    (segment,) = parquet_segments(tmp_path / "log")
    pq.write_table(pq.read_table(segment).drop_columns(["valued_by"]), segment)
    assert read_log(tmp_path / "log").decisions["valued_by"].isna().all()
    assert asked_for(tmp_path / "log", CATALOG, capsys)["replayed"] == 50


def test_an_explored_and_rated_log_gives_the_value_of_another_catalog(tmp_path, capsys):
    written(tmp_path / "log", load_catalog(CATALOG), 1500, rated=True)
    found = asked_for(tmp_path / "log", CATALOG, capsys)["value"]
    assert found["explored"] == 1.0
    assert found["effective"] > 100
    for name in ("live", "snips", "doubly_robust"):
        assert found[name][1] < 0.7 < found[name][2]
    assert main(["shadow", str(tmp_path / "log"), "--catalog", str(CATALOG)]) == 0
    assert "effective sample size" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "code", "told"), [("x", 1, "no such"), ("", 2, "holds no")])
def test_a_folder_without_a_log_is_refused(tmp_path, capsys, name, code, told):
    assert main(["shadow", str(tmp_path / name), "--catalog", str(CATALOG)]) == code
    assert told in capsys.readouterr().err


def written(folder, catalog, n, *, rated=False):
    """A log of the catalog's models, each served by chance alone; 70 % of them resolved."""
    rng, log = np.random.default_rng(0), LogWriter(folder)
    for number, level in enumerate(levels(n)):
        served = MODELS[int(rng.integers(len(MODELS)))]
        fields = {"predictor": catalog.predictor_fingerprint, "candidates": MODELS}
        fields |= {"dimensions": catalog.dimensions, "chosen": served, "served": served}
        fields |= {"propensities": (0.2,) * 5, "propensity": 0.2, "shortfalls": (0.0,) * 5}
        log.add(decision(number, level, **fields))
        if rated:
            log.add(OutcomeRecord(f"d{number}", AT, float(rng.random() < 0.7)))
    log.close()
