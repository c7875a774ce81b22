"""Learning and fitting rivals in the background: started, watched, stopped."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import numpy as np

from hydra_core.catalog.binding import require_bundle
from hydra_core.evaluation.evalset.changes import EvalSetChanges
from hydra_core.evaluation.evalset.score_files import messages_of
from hydra_core.evaluation.learning.learn import learn
from hydra_core.evaluation.learning.material import gather
from hydra_core.evaluation.learning.rivals import Rival, rivals
from hydra_core.evaluation.learning.write import (
    require_free_folder,
    telling,
    write_outcome_model,
)
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.store import Action
from hydra_core.types import Catalog
from hydra_core.ui import cache, cache_evaluate
from hydra_core.ui.access import identity
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.tasks import Task, Write

__all__ = ["find_rivals", "learning", "start"]


def learning(folder: Path) -> Task | None:
    """The newest run that learns into this folder."""
    return cache_evaluate.tasks().get(("learn", folder))


def start(entry: SetEntry, catalog: Catalog, models: tuple[str, ...], folder: Path) -> None:
    """Make missing text vectors, learn, and write the outcome model.

    Raises:
        AccessError: The actor may not.
        HydraError: Something was learned there already, the set or the predictor cannot be opened,
            or the catalog is bound to another bundle than the console's.
    """
    me, store = identity.actor(), cache.store()
    tell = telling(me, store, folder)
    require_free_folder(folder, force=False)
    require_bundle(catalog, cache.bundle().fingerprint)
    evalset = cache.evalset(entry.info.path, entry.info.digest)
    predictor = cache.predictor()
    bundle = predictor.bundle
    specs = [catalog.model(name) for name in models]
    prices = {m.id: (m.input_usd_per_mtok, m.output_usd_per_mtok) for m in specs}

    def work(task: Task) -> OutcomeModel:
        task.stage = "Reading the messages"
        EvalSetChanges(me, store).score(evalset, predictor, task.step)
        messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
        material = gather(evalset, messages, models)
        task.stage, task.done, task.total = "Learning, cross-fitted", 0, 0
        per_mtok = np.array([prices[name] for name in material.models])
        found = learn(material, per_mtok, progress=task.step)
        return write_outcome_model(folder, found, fingerprint=bundle.fingerprint, tell=tell)

    write = Write(store, me, Action.LEARN, f"outcome model {folder.name}")
    cache_evaluate.tasks().start(("learn", folder), work, write=write)


def find_rivals(key: Hashable, sweeps: tuple[Sweep, ...], model: OutcomeModel) -> Task:
    """What other ways to route gain; begun when it is first asked for, then kept."""
    evalset, seed = sweeps[0].evalset, model.figures.get("seed", 0)
    folds = model.figures.get("folds", 5)
    assert isinstance(folds, int)
    assert isinstance(seed, int)

    def work(task: Task) -> tuple[Rival, ...]:
        messages = messages_of(evalset, model.fingerprint, model.vectors)
        material = gather(evalset, messages, model.models)
        return rivals(sweeps, material, folds=folds, seed=seed, progress=task.step)

    tasks = cache_evaluate.tasks()
    return tasks.get(("rivals", key)) or tasks.start(("rivals", key), work)
