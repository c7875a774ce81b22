"""The whole loop on mixed-2024, played by a fake server: from messages to a router, and again.

    python -m benchmarks.quality.loop [--collected 300] [--served 1000] [--again 250]
        [--outer 1500] [--seed 1]

A pool of mixed-2024 answers by its recorded outcomes. Messages are collected, a catalog is made, an
outcome model is learned and published; the service routes further messages and gets feedback on
30 %; every model answers a sample of the logged messages; this and the log's own outcomes are
joined to what was collected before, and learned from; the second catalog is a canary, then
published. Both models are measured on queries that nothing learned from.
"""

import argparse
import contextlib
import json
import os
import tempfile
from datetime import date
from pathlib import Path

import httpx
import numpy as np
import yaml

from benchmarks.quality.outcome_lift import POOLS
from benchmarks.quality.real_pools import SHARED
from hydra_core.catalog import load_catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.choosing.lift import lift_of
from hydra_core.cli.main import main as run_verb
from hydra_core.decision_log.reading import read_log
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.outcome_model.format import load_outcome_model
from hydra_core.outcome_model.heads import Messages
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.predictor.signals import surface_counts
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.sweep import sweep_by_value
from hydra_core.server.run import build
from hydra_core.server.settings import Settings
from hydra_core.store import open_store
from sample_data import mixed_2024
from tests.lab.labeling.fake_server import FakeServer
from tests.server.conftest import running

MODELS = POOLS["E"]
RATED = 0.3
#: Conversations that the canary gets a share of.
CANARY = 40


def verb(*words):
    """Run a verb of the command line; raises AssertionError where it fails."""
    assert run_verb([str(word) for word in words]) == 0, words


class Played:
    """A server that gives each model's recorded outcome, and the messages it knows."""

    def __init__(self, whole):
        self.place = {text: i for i, text in enumerate(whole.texts.astype(str))}
        self.whole, self.solved = whole, whole.quality >= 0.5
        self.server = FakeServer()
        self.server.write = self.answer

    def answer(self, body, rubbish):
        """The whole response, as bytes."""
        del rubbish
        row = self.place[body["messages"][-1]["content"]]
        column = MODELS.index(body["model"])
        used = {
            f"{way}_tokens": max(1, int(self.whole.extras[f"{name}_tokens"][row, column]))
            for way, name in (("prompt", "input"), ("completion", "output"))
        }
        said = "right" if self.solved[row, column] else "wrong"
        message = {"role": "assistant", "content": said}
        return json.dumps(
            {
                "id": "x", "object": "chat.completion", "model": body["model"], "usage": used,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            }
        ).encode()  # fmt: skip


def write_files(played, rows):
    """What the operator has: messages, prices, upstreams, a grader."""
    known = yaml.safe_load((SHARED / "mixed-2024" / "prices.yaml").read_text())["models"]
    prices = {
        name: {"input": known[name]["input"], "output": known[name]["output"], "date": "2024-07-01"}
        for name in MODELS
    }
    Path("prices.yaml").write_text(yaml.safe_dump({"models": prices}))
    upstream = {"name": "fake", "base_url": played.server.url}
    upstream["models"] = {name: name for name in MODELS}
    text = yaml.safe_dump({"schema": "hydra.upstreams/v1", "upstreams": [upstream]})
    Path("upstreams.yaml").write_text(text)
    Path("grade.yaml").write_text(
        "schema: hydra.grade/v1\nbudget_usd: 1000\nmax_tokens: 4096\nconcurrency: 8\n"
        "graders:\n  exact: {kind: exact}\n"
    )
    texts = played.whole.texts.astype(str)
    lines = (json.dumps({"id": f"q{i}", "text": texts.iloc[i], "reference": "right"}) for i in rows)
    Path("messages.jsonl").write_text("".join(f"{line}\n" for line in lines))


def write_live_grader():
    """How answers to logged messages are graded: they bring no reference."""
    text = Path("grade.yaml").read_text()
    Path("live.yaml").write_text(text.replace("{kind: exact}", '{kind: regex, pattern: "^right$"}'))


def routed_by(evalset, learned, name):
    """A catalog like `mine` that routes by an outcome model in the middle of the cost range."""
    path = Path("workspace/catalogs/mine.yaml")
    catalog, model = (
        load_catalog(path),
        load_outcome_model(Path("workspace/outcome_models", learned)),
    )
    sweep = sweep_by_value(evalset, catalog, model, cross_fitted=True, today=date.today())
    document = CatalogDocument.parse(path.read_text(), str(path))
    document.set("policy", "rule", "value")
    document.set("policy", "value_usd", float(f"{sweep.middle:.3g}"))
    reference = {"path": f"outcome_models/{learned}", "sha256": model.digest}
    document.set("outcome_model", reference)
    Path(f"workspace/catalogs/{name}.yaml").write_text(document.text())
    return model


def serve(texts, rng, **settings):
    """Have a service answer, and rate a share of the answers."""
    app = build(
        Settings(
            catalog="store:my/router", upstreams="upstreams.yaml", log="workspace/log",
            log_text=True, explore_all=0.05, explore_budget_usd=1e9, **settings,
        )
    )  # fmt: skip
    with running(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        for number, text in enumerate(texts):
            body = {"model": "auto", "messages": [{"role": "user", "content": text}]}
            body["hydra"] = {"conversation_id": f"{number}-{len(texts)}"}
            said = client.post("/v1/chat/completions", json=body)
            assert said.status_code == 200, said.text
            if rng.random() < RATED:
                right = said.json()["choices"][0]["message"]["content"] == "right"
                sent = {"decision_id": said.headers["x-hydra-decision-id"], "quality": float(right)}
                assert client.post("/v1/outcomes", json=sent).status_code == 202


def outer_lift(played, rows, model):
    """Lift on queries that nothing learned from."""
    texts = played.whole.texts.astype(str).iloc[rows].tolist()
    found = default_predictor().predict_batches(texts)
    messages = Messages(found.requirements, found.vectors.astype(np.float16), surface_counts(texts))
    pool = model.heads.for_pool(MODELS, np.zeros(len(MODELS)), None)
    quality = played.solved[rows].astype(float)
    cost = played.whole.cost_usd[rows]
    return lift_of(quality, cost, pool.predict(messages), None, np.random.default_rng(0))


def loop(folder, collected, served, again, outer, seed):
    """Walk the loop in a folder; the figures.

    Args:
        again: Logged messages that every model answers before learning again.
    """
    whole = mixed_2024.read(folder / "whole", SHARED / "mixed-2024", MODELS)
    order = np.random.default_rng([23, seed]).permutation(whole.n)
    first, then, rest = np.split(order, [collected, collected + served])
    played, rng = Played(whole), np.random.default_rng(seed)
    with contextlib.chdir(folder), environment("workspace"):
        write_files(played, first)
        asked = ("--prices", "prices.yaml", "--upstreams", "upstreams.yaml")
        verb("collect", "messages.jsonl", *asked, "--grade", "grade.yaml", "--out", "mine")
        verb("init", "mine", "--prices", "prices.yaml", "--out", "mine")
        verb("learn", "mine", "--catalog", "mine", "--out", "first", "--folds", 3)
        mine = load_evalset(Path("workspace/evalsets/mine"))
        before = routed_by(mine, "first", "router")
        verb("publish", "router", "--evalset", "mine")
        serve(whole.texts.astype(str).iloc[then].tolist(), rng)
        verb("import", "log", "log", "--out", "live")
        write_live_grader()
        sample = ("--from-log", "log", "--sample", again)
        verb("collect", *sample, *asked, "--grade", "live.yaml", "--out", "week")
        verb("import", "sets", "mine", "week", "live", "--out", "both")
        verb("learn", "both", "--catalog", "mine", "--out", "second", "--folds", 3)
        both = load_evalset(Path("workspace/evalsets/both"))
        after = routed_by(both, "second", "next")
        verb("canary", "begin", "log", "--catalog", "next", "--share", 0.5)
        serve(whole.texts.astype(str).iloc[first[:CANARY]].tolist(), rng, canary_look_s=0.2)
        arms = read_log(Path("workspace/log")).decisions["arm"]
        verb("canary", "end", "log")
        verb("publish", "next", "--as", "my/router", "--note", "learned again")
        store = open_store(Path("workspace"))
        revisions = store.catalogs()["my/router"]
        store.close()
    played.server.shutdown()
    played.server.server_close()
    lifts = [outer_lift(played, rest[:outer], model) for model in (before, after)]
    change = mean_interval(lifts[1].contributions - lifts[0].contributions)
    return {
        "complete": int(np.isfinite(both.quality).all(axis=1).sum()),
        "logged": both.n - mine.n,
        "revisions": revisions,
        "canary": int((arms == "canary").sum()),
        "promised": [model.figures["lift"] for model in (before, after)],
        "outer": [one.mean for one in lifts],
        "change": change,
        "expected": before.figures["expected_gain"].get(str(again)),
        "sentence": after.figures["logged"]["sentence"],
    }


@contextlib.contextmanager
def environment(workspace):
    """The workspace of the verbs, for as long as the block."""
    old = os.environ.get("HYDRA_WORKSPACE")
    os.environ["HYDRA_WORKSPACE"] = workspace
    try:
        yield
    finally:
        if old is None:
            del os.environ["HYDRA_WORKSPACE"]
        else:
            os.environ["HYDRA_WORKSPACE"] = old


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collected", type=int, default=300)
    parser.add_argument("--served", type=int, default=1000)
    parser.add_argument("--again", type=int, default=250)
    parser.add_argument("--outer", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sizes = (options.collected, options.served, options.again, options.outer)
        found = loop(Path(scratch), *sizes, options.seed)
    for name, promised, outer in zip(
        ("first", "second"), found["promised"], found["outer"], strict=True
    ):
        lo, hi = promised["interval"]
        print(
            f"{name}: promised {100 * promised['mean']:+.1f} [{100 * lo:+.1f}, {100 * hi:+.1f}], "
            f"on outer queries {outer.scaled(100.0).text('pp')}"
        )
    print(f"change on outer queries: {found['change'].scaled(100.0).text('pp')}")
    if found["expected"] is not None:
        print(
            f"expected of {options.again} more complete queries: {100 * found['expected']:+.1f} pp"
        )
    print(
        f"{found['complete']} complete and {found['logged']} logged queries, {found['canary']} "
        "requests on the canary"
    )
    print(found["sentence"])


if __name__ == "__main__":
    main()
