"""What was learned from a small set, once for all tests of the folder."""

import pytest

from hydra_core.choosing.learn import learn
from tests.choosing.learning_sets import learnable, material_of


@pytest.fixture(scope="session")
def learning(tmp_path_factory):
    evalset = learnable(tmp_path_factory.mktemp("om") / "set", 200, known={"strong": 60})
    return learn(material_of(evalset), None, folds=2, curve=False)
