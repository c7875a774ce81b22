"""What an operator gives beside the files of an import: models, prices, which score counts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Final

from hydra_core.base.errors import Problem
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.rules import model_id_problem


class AskNames(dict[str, str]):
    """Instead of a choice of models: an import stops with `NamesKnown` once names are read."""


class NamesKnown(Exception):  # noqa: N818 (an answer, not a fault)
    """The names of models that the files hold; nothing was imported.

    Attributes:
        names: As the files name them.
        scores: The scores that may be the quality, where one has to be chosen.
        labels: Label -> how often it stands as feedback; each needs a worth.
    """

    def __init__(
        self,
        names: Sequence[str],
        scores: Sequence[str] = (),
        labels: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(f"the files name {len(names)} models")
        self.names, self.scores, self.labels = tuple(names), tuple(scores), dict(labels or {})


@dataclass(frozen=True, slots=True)
class Given:
    """What an operator gave beside the files.

    Attributes:
        more: The files that belong to them (see `Format.more`).
        models: Model id -> the name in the files; empty takes every one under its own name.
        prices: For what has no cost of its own.
        score: Which feedback is the quality, '' for the only one.
        scale: The quality that means 1.
        labels: Label -> quality, where feedback is given in words.
        text_path: Where the message stands in a harness's row, '' for its usual place.
    """

    more: Sequence[TableFile] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    prices: PriceCard = field(default_factory=PriceCard)
    score: str = ""
    scale: float = 1.0
    labels: Mapping[str, float] = field(default_factory=dict)
    text_path: str = ""

    @property
    def asks(self) -> bool:
        """Whether it only asks for the names of the models."""
        return isinstance(self.models, AskNames)

    def chosen_models(self, known: Sequence[str]) -> tuple[dict[str, str], list[Problem]]:
        """Upstream name -> model id for the models to import, and what is wrong with the choice.

        Raises:
            NamesKnown: It only asks which there are.
        """
        if self.asks:
            raise NamesKnown(known)
        wanted = dict(self.models) or {name: name for name in known}
        problems = []
        for model, name in wanted.items():
            bad = model_id_problem(model, f"--model {model[:40]}")
            if bad is not None and not self.models:
                flag = quote(f"{proposed_ids([name])[name]}={name}")
                bad = replace(bad, remedy=f"name it yourself, such as --model {flag}")
            problems += [bad] if bad is not None else []
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or list(known)[:5]
                remedy = f"models like it: {', '.join(near)}"
                problems.append(Problem(f"{model}={name}", "there is no such model", remedy))
        names = list(wanted.values())
        twice = sorted({name for name in names if names.count(name) > 1})
        problems += [Problem(name, "stands for several models", "name it once") for name in twice]
        return {name: model for model, name in wanted.items()}, problems


#: Every model under its own name, and the one score there is.
NOTHING: Final = Given()
