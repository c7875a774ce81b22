"""A workspace whose catalog routes by value: eval set, outcome model and catalog, in a second."""

import re
from pathlib import Path

import numpy as np

from hydra_core.base.shipped import CATALOGS
from hydra_core.choosing.learn import learn
from hydra_core.choosing.material import gather
from hydra_core.choosing.write import write_outcome_model
from hydra_core.console.tune.learned import drafted
from hydra_core.evalsets.scores import messages_of
from hydra_core.predictor.bundle import load_bundle
from tests.choosing.learning_sets import learnable

MODELS = ("gpt-5.4-mini", "claude-sonnet-4.6", "gpt-5.4")
#: What a link to it carries.
LINK = {"set": "my/traffic", "catalog": "my/valued"}
VALUE_USD = 0.01


def valued(workspace: Path, n: int = 400, *, rule: str = "value") -> None:
    """Write the set `my/traffic`, what was learned from it, and the catalog `my/valued`."""
    bundle = load_bundle()
    evalset = learnable(
        workspace / "evalsets" / "traffic", n, models=MODELS, fingerprint=bundle.fingerprint,
        dimensions=bundle.dimensions, width=bundle.vectors,
    )  # fmt: skip
    material = gather(evalset, messages_of(evalset, bundle.fingerprint, bundle.vectors), MODELS)
    found = learn(material, np.array([[0.1, 0.4], [1.0, 4.0], [5.0, 20.0]]), folds=2, curve=False)
    folder = workspace / "outcome_models" / "traffic"
    folder.parent.mkdir()
    model = write_outcome_model(folder, found, fingerprint=bundle.fingerprint)
    (workspace / "catalogs").mkdir()
    text = drafted((CATALOGS / "paper_five.yaml").read_text(), "valued", model, VALUE_USD)
    text = re.sub(r"(?m)^( +rule:) value$", rf"\1 {rule}", text)
    (workspace / "catalogs" / "valued.yaml").write_text(text)
