"""An operator's set with gaps: a clear sentence each, nothing guessed, nothing lost."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from tests.predictor.tiny_bundle import make_bundle

MODELS = ("small", "large")
N = 12
PRICES = "models:\n  small: {input: 1, output: 2}\n  large: {input: 10, output: 20}\n"
READ, WRITTEN = np.full((N, 2), 1000.0), np.tile([100.0, 300.0], (N, 1))
COST = np.tile([0.0015, 0.02], (N, 1))
BY_TOKENS = {"small": (1000 * 1 + 100 * 2) / 1e6, "large": (1000 * 10 + 300 * 20) / 1e6}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / "tiny"
    make_bundle(folder)
    return folder


@pytest.fixture
def at(tmp_path, bundle, capsys):
    """A set with or without tokens and costs, and the verbs on it."""

    class At:
        folder, out = tmp_path / "set", tmp_path / "made.yaml"

        def saved(self, *, tokens=True, costs=True, models=MODELS):
            quality = np.tile([[0.0, 1.0], [1.0, 1.0]], (N // 2, 1))
            ids = [f"q{number}" for number in range(N)]
            texts = [f"{'why ' * number}does it fail?" for number in range(N)]
            queries = pd.DataFrame({"query_id": ids, "text": texts, "language": "en"})
            extras = {"input_tokens": READ, "output_tokens": WRITTEN} if tokens else {}
            cost = COST if costs else np.full((N, 2), np.nan)
            save_evalset(
                self.folder, name="mine", queries=queries, models=models,
                quality=quality, cost_usd=cost, extras=extras, force=True,
            )  # fmt: skip

        def init(self, prices=PRICES, *more):
            (tmp_path / "p.yaml").write_text(prices)
            return self.run(
                "init", self.folder, "--prices", tmp_path / "p.yaml", "--out", self.out, "--force",
                *more,
            )  # fmt: skip

        def evaluated(self):
            code, out, err = self.run("evaluate", self.folder, "--catalog", self.out, "--json")
            return (code, json.loads(out) if out else None, err)

        def run(self, verb, *arguments):
            code = main([verb, *map(str, arguments), "--bundle", str(bundle)])
            return (code, *capsys.readouterr())

    return At()


def mean_costs(found):
    return {model: one["mean_cost_usd"] for model, one in found["models"].items()}


def test_tokens_and_prices_give_the_cost(at):
    at.saved()
    assert at.init()[0] == 0
    assert load_catalog(at.out).realised_costs.usd_per_query == pytest.approx(BY_TOKENS)
    found = at.evaluated()[1]
    assert mean_costs(found) == pytest.approx(BY_TOKENS)
    assert (found["costs"], found["recorded_costs"]) == ("the catalog's prices", [])


def test_tokens_without_any_cost_are_enough(at):
    at.saved(costs=False)
    assert at.init()[0] == 0
    assert mean_costs(at.evaluated()[1]) == pytest.approx(BY_TOKENS)


def test_prices_without_tokens_leave_the_recorded_costs_and_say_so(at):
    at.saved(tokens=False)
    assert at.init()[0] == 0
    found = at.evaluated()[1]
    assert mean_costs(found) == pytest.approx({"small": 0.0015, "large": 0.02})
    assert "do not change this set" in found["costs"]
    assert sorted(found["recorded_costs"]) == ["large", "small"]


def test_an_entry_that_was_left_out_says_why(at, tmp_path):
    at.saved()
    table = tmp_path / "p.csv"
    table.write_text("model,input,output\nsmall,0.000001,0.000002\nlarge,1,2\n")
    code, _, err = at.run("init", at.folder, "--prices", table, "--out", at.out)
    assert code == 2
    assert "small: its entry was left out: a price outside" in err
    assert "check the unit" in err


def test_what_a_list_says_of_a_free_model_holds_beside_a_given_price(at, tmp_path):
    at.saved(tokens=False)
    path = tmp_path / "list.csv"
    path.write_text("Model,Input,Output,Context window\nsmall,0,0,200000\nlarge,1,2,400000\n")
    code, _, err = at.run("init", at.folder, "--prices", path, "--out", at.out)
    assert code == 2
    assert "its entry was left out: a price of 0" in err
    made = ("--prices", path, "--price", "small=0.001,0.001", "--out", at.out)
    assert at.run("init", at.folder, *made)[0] == 0
    windows = {model.id: model.context_window for model in load_catalog(at.out).models}
    assert windows == {"small": 200_000, "large": 400_000}


FREE = "models:\n  small: free\n  large: {input: 10, output: 20}\n"


@pytest.mark.parametrize("tokens", [True, False])
def test_a_model_that_is_said_to_be_free_costs_nothing(at, monkeypatch, tokens):
    monkeypatch.setattr("tests.choosing.test_prices_and_tokens.COST", np.tile([0.0, 0.016], (N, 1)))
    at.saved(tokens=tokens)
    assert at.init(FREE)[0] == 0
    small = load_catalog(at.out).models[0]
    assert (small.id, small.input_usd_per_mtok, small.output_usd_per_mtok) == ("small", 0, 0)
    assert small.price_source == "free, as the price file says"
    assert mean_costs(at.evaluated()[1]) == {"small": 0.0, "large": pytest.approx(0.016)}


def test_a_free_price_beside_paid_costs_has_to_be_confirmed(at):
    at.saved()
    code, _, err = at.init(FREE)
    assert code == 2
    assert (
        "small: the price times the recorded tokens gives $0 a query, $0.0015 was recorded" in err
    )
    assert at.init(FREE, "--confirm-price", "small")[0] == 0


def test_a_list_with_a_price_of_0_names_the_word_that_makes_it_free(at, tmp_path):
    at.saved(costs=False)
    path = tmp_path / "list.csv"
    path.write_text("Model,Input,Output\nsmall,0,0\nlarge,10,20\n")
    command = ("init", at.folder, "--prices", path, "--out", at.out)
    _, _, err = at.run(*command)
    option = re.search(r"if it costs nothing (--price \S+)\)", err)[1]
    assert at.run(*command, *option.split())[0] == 0
    assert mean_costs(at.evaluated()[1])["small"] == 0
    assert load_catalog(at.out).models[0].price_source == "free: given by the operator"


def test_what_a_list_asks_beside_the_price_is_a_warning(at, tmp_path):
    at.saved()
    rows = [
        {"id": name, "pricing": {"prompt": price / 1e6, "completion": 2 * price / 1e6, **more}}
        for name, price, more in (("small", 1, {"request": "0.005"}), ("large", 10, {}))
    ]
    (tmp_path / "models.json").write_text(json.dumps({"data": rows}))
    listed = ("--prices", tmp_path / "models.json", "--confirm-price", "small")
    code, out, _ = at.run("init", at.folder, *listed, "--out", at.out)
    assert code == 0
    assert "warning: small: plus 0.005 USD per request" in out


def test_neither_tokens_nor_costs_orders_by_list_price_and_evaluate_says_what_is_missing(at):
    at.saved(tokens=False, costs=False)
    code, out, _ = at.init()
    assert code == 0
    assert "Cost order by list price: the set lacks realised costs." in out
    code, out, err = at.evaluated()
    assert (code, out) == (2, None)
    assert "cost" in err


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        ("models:\n  small: {input: 1, output: 2}\n", "large: has no price"),
        (PRICES.replace("input: 10", "input: 0"), "input"),
        (PRICES.replace("input: 10", "input: .nan"), "input"),
        (PRICES.replace("input: 10, ", ""), "input"),
        (PRICES.replace("input: 10", "input: -1"), "input"),
        (PRICES.replace("input: 10", "input: cheap"), "input"),
    ],
    ids=["missing", "zero", "nan", "half", "negative", "text"],
)
def test_a_price_that_cannot_be_is_refused_and_nothing_is_written(at, prices, told):
    at.saved()
    code, _, err = at.init(prices)
    assert code == 2
    assert "large" in err
    assert told in err
    assert not at.out.exists()


def test_a_model_that_the_set_lacks_is_named(at):
    at.saved()
    code, _, err = at.init(PRICES, "--models", "small,gpt-9")
    assert code == 2
    assert "gpt-9: has no outcomes in this eval set" in err
    assert "small, large" in err
    assert not at.out.exists()


def test_a_model_in_the_catalog_alone_is_said_and_the_others_are_replayed(at):
    at.saved()
    assert at.init()[0] == 0
    at.saved(models=("small", "other"))
    at.out.write_text(at.out.read_text().replace("cost_basis: realised", "cost_basis: list_price"))
    code, found, _ = at.evaluated()
    assert code == 0
    assert set(found["models"]) == {"small"}
    notes = " ".join(found["notes"])
    assert "large" in notes


def test_evaluate_scores_by_itself_and_keeps_the_scores(at):
    at.saved()
    assert at.init()[0] == 0
    for path in (at.folder / "scores").glob("*"):
        path.unlink()
    code, found, err = at.evaluated()
    assert (code, found["n"]) == (0, N)
    assert f"scoring the {N} queries of mine" in err
    assert f"{N}/{N}" in err  # progress
    assert list((at.folder / "scores").glob("*.parquet"))
    assert "scoring" not in at.evaluated()[2]
    assert load_evalset(at.folder).n == N
