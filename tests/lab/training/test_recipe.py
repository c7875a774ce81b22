# ruff: noqa: E402 - torch is looked for before what needs it is imported

from collections.abc import Sequence

import pytest

pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.base.errors import HydraError
from hydra_core.lab.training.__main__ import main, with_field
from hydra_core.lab.training.network.recipe import Recipe, settings, targets_of
from hydra_core.lab.training.texts.dataset import Message


def test_a_field_is_set_by_its_dotted_name() -> None:
    recipe = with_field(Recipe(), "fit.learning_rate", "3e-5")
    assert recipe.fit.learning_rate == 3e-5
    assert with_field(recipe, "layers", [0, 1]).layers == (0, 1)


@pytest.mark.parametrize("name", ["nope", "fit.nope", "fit"])
def test_an_unknown_field_is_refused(name: str) -> None:
    with pytest.raises(HydraError):
        with_field(Recipe(), name, 1)


def test_teachers_soften_labels_of_messages_but_not_of_tasks(messages: Sequence[Message]) -> None:
    teacher = {m.id: (1.0, 1.0, 1.0, 1.0) for m in messages}
    targets = targets_of(messages, Recipe(soft=0.5), teacher)
    corpus, task = messages[0], messages[-1]
    assert targets[corpus.id][0] == tuple(0.5 * v + 0.5 for v in corpus.labels or ())
    assert targets[task.id][0] == task.labels


def test_the_ablations_cover_k_tokens_and_size() -> None:
    names = [name for name, _ in settings(Recipe())]
    assert names[:4] == ["K = 1", "K = 2", "K = 3", "K = 4"]
    assert {"512 tokens", "2048 tokens"} <= set(names)


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in ("fit", "export", "refit", "ablations"))
