"""A catalog that routes by value with the shipped predictor, learned on a part of the demo set."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from hydra_core.choosing.learn import learn
from hydra_core.choosing.material import gather
from hydra_core.choosing.write import write_outcome_model
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import messages_of
from hydra_core.outcome_model.format import load_outcome_model
from hydra_core.predictor.onnx_predictor import default_predictor
from tests.made_once import made_once
from tests.server.conftest import CATALOG, MODELS


def _learned(folder):
    bundle = default_predictor().bundle
    demo = load_evalset(Path("sample_data/console_demo"))
    whole = gather(demo, messages_of(demo, bundle.fingerprint, bundle.vectors), MODELS)
    every = np.arange(0, len(whole.rows), 8)
    some = {name: getattr(whole, name)[every] for name in ("quality", "cost_usd", "rows", "others")}
    some |= {"clusters": np.arange(every.size), "messages": whole.messages.take(every)}
    some |= {"input_tokens": None, "output_tokens": None}
    found = learn(replace(whole, **some), None, folds=2, curve=False)
    write_outcome_model(folder / "outcomes", found, fingerprint=bundle.fingerprint)


def value_catalog(folder, *, value_usd, sticky=None):
    """The path of the catalog; its outcome model lies beside it."""
    place = folder / "outcomes"
    if not place.exists():
        shutil.copytree(made_once("server_outcomes", _learned) / "outcomes", place)
    content = yaml.safe_load(CATALOG.read_text())
    content["policy"] |= {"rule": "value", "value_usd": value_usd}
    content["policy"]["sticky"] |= sticky or {}
    content["outcome_model"] = {"path": "outcomes", "sha256": load_outcome_model(place).digest}
    path = folder / f"value-{value_usd}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path
