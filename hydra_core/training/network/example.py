"""What a network is trained on."""

from __future__ import annotations

from dataclasses import dataclass

from hydra_core.routing.conversations.context import LastTurn

__all__ = ["Example", "Family"]


@dataclass(frozen=True, slots=True)
class Example:
    """One training text: (K,) targets in [0, 1] and its weight in the loss."""

    text: str
    target: tuple[float, ...]
    weight: float = 1.0
    turn: int = 1
    context: str = ""

    @property
    def asked(self) -> LastTurn:
        """What the model sees of it."""
        return LastTurn(self.text, self.turn, self.context)


#: Wordings of one request, mostly one: translations, or with and without a claim of difficulty.
Family = list[Example]
