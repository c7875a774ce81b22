"""Scoring jobs that outlive a page run: a worker thread writes progress to a plain object."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset.changes import EvalSetChanges
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.scoring import ScoringPredictor
from hydra_core.store import Action, Actor, Store, require

__all__ = ["Jobs", "ScoreJob"]


@dataclass(slots=True)
class ScoreJob:
    """Progress of one job; written by its thread, read by any page.

    Attributes:
        subject: What is scored, as the audit trail names it.
        owner: Who began it.
    """

    subject: str
    owner: str
    total: int
    done: int = 0
    running: bool = True
    error: str = ""
    cancelled: bool = False


class _CancelledError(Exception):
    """Raised inside the worker when the operator stops it."""


@dataclass(slots=True)
class Jobs:
    """All jobs of this console by eval set folder and bundle fingerprint."""

    _jobs: dict[tuple[Path, str], ScoreJob] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, path: Path, fingerprint: str) -> ScoreJob | None:
        """The newest job of this folder and bundle."""
        return self._jobs.get((path, fingerprint))

    def start(
        self, evalset: EvalSet, predictor: ScoringPredictor, *, actor: Actor, store: Store
    ) -> ScoreJob:
        """Start scoring, unless a job of the same folder and bundle is running.

        Raises:
            AccessError: The actor may not score.
        """
        require(actor, Action.SCORE)
        key = (evalset.path, predictor.bundle.fingerprint)
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.running:
                return job
            job = ScoreJob(f"eval set {evalset.path.name}", actor.name, total=evalset.n)
            self._jobs[key] = job
        given = (job, evalset, predictor, EvalSetChanges(actor, store))
        thread = threading.Thread(target=_work, args=given, daemon=True)
        thread.start()
        return job

    def stop(self, job: ScoreJob, *, actor: Actor, store: Store) -> None:
        """Stop a job; another person's takes a publisher.

        Raises:
            AccessError: The actor may not.
        """
        action = Action.SCORE if actor.name == job.owner else Action.MODERATE
        store.tell(actor, action, f"scoring of {job.subject} stopped", before=job.owner)
        job.cancelled = True


def _work(
    job: ScoreJob, evalset: EvalSet, predictor: ScoringPredictor, changes: EvalSetChanges
) -> None:
    def progress(done: int, total: int) -> None:
        job.done, job.total = done, total
        if job.cancelled:
            raise _CancelledError

    try:
        changes.score(evalset, predictor, progress, chunk=64)
    except _CancelledError:
        job.error = ""
    except HydraError as error:
        job.error = str(error)
    finally:
        job.running = False
