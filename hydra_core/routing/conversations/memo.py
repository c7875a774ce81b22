"""A conversation's scores, made once however often it is played."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.conversations.context import context_at
from hydra_core.routing.conversations.messages import Conversation
from hydra_core.routing.router import Scorer

__all__ = ["Memo"]


class Memo:
    """A predictor that scores each (message, turn, context) once: every mode sees the same.

    Args:
        predictor: What scores.
        conversation: Scored whole at once.
    """

    def __init__(self, predictor: Scorer, conversation: Conversation) -> None:
        self._predictor = predictor
        self._known: dict[tuple[str, int, str], Prediction] = {}
        for number, turn in enumerate(conversation.turns, 1):
            self.predict([turn.text], [number], [context_at(conversation.turns, number)])

    def predict(
        self, texts: list[str], turns: list[int] | None = None, contexts: list[str] | None = None
    ) -> Prediction:
        """As `Predictor.predict`."""
        numbers, before = turns or [1] * len(texts), contexts or [""] * len(texts)
        rows = [self._one(asked) for asked in zip(texts, numbers, before, strict=True)]
        joined: dict[str, Any] = {
            part.name: None
            if getattr(rows[0], part.name) is None
            else np.concatenate([getattr(row, part.name) for row in rows])
            for part in fields(Prediction)
        }
        return Prediction(**joined)

    def _one(self, asked: tuple[str, int, str]) -> Prediction:
        if asked not in self._known:
            text, turn, context = asked
            self._known[asked] = self._predictor.predict([text], [turn], [context])
        return self._known[asked]
