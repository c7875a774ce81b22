"""Every error HyDRA raises on purpose, below `HydraError`.

Each message names the place, the value found and the way out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

_LONGEST_PART: Final = 2_000


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input.

    Attributes:
        place: Where it is, e.g. ``models[2] 'gpt-x': input_usd_per_mtok`` or ``line 17``.
        message: What is wrong, with the value found, e.g. ``must be > 0, got -5``.
        remedy: What to do about it, e.g. ``give the price in USD per million tokens``.
    """

    place: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        place, message, remedy = map(_shown, (self.place, self.message, self.remedy))
        text = f"{place}: {message}" if place else message
        return f"{text} ({remedy})" if remedy else text


def _shown(text: str) -> str:
    """A part of a problem, at a length that is still read: it may repeat what somebody sent."""
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}…"


class HydraError(Exception):
    """Base of every expected error; `str(error)` is fit to show to an operator."""


class ProblemsError(HydraError):
    """Input (`source`) with one or more problems, all of them listed."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(source, self.problems)

    @classmethod
    def of(cls, source: str, message: str, remedy: str = "", *, place: str = "") -> Self:
        """The error for one problem."""
        return cls(source, [Problem(place, message, remedy)])

    @classmethod
    def raise_any(cls, source: str, problems: Sequence[Problem]) -> None:
        """Raise it where there are problems."""
        if problems:
            raise cls(source, problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.source}: {self.problems[0]}"
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        return f"{self.source}: {len(self.problems)} problems\n{lines}"


class CatalogError(ProblemsError):
    """A catalog that is not valid."""


class EvalSetError(ProblemsError):
    """An eval set or an import that is not valid."""


class FlightError(ProblemsError):
    """A flight whose settings or table are not valid."""


class LabelError(ProblemsError):
    """A labelling run whose settings, messages or ledger are not valid."""


class BundleError(ProblemsError):
    """A predictor bundle that is missing, damaged or foreign."""


class OutcomeModelError(ProblemsError):
    """An outcome model that is missing, damaged or foreign, or that cannot be learned."""


class MismatchError(HydraError):
    """Two parts that do not belong together, such as a catalog and another bundle's bands."""


class RoutingError(HydraError):
    """No route is possible; a gateway answers with `http_status`."""

    def __init__(self, message: str, *, http_status: int) -> None:
        self.http_status = http_status
        super().__init__(message)


class StoreError(HydraError):
    """A read or write of the workspace store failed; nothing was changed."""


class ConflictError(StoreError):
    """The revision edited is no longer the newest; nothing was changed."""


class ExtraError(HydraError):
    """An optional part (`what`) that is not installed; `extra` names it in pyproject.toml."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed: pip install 'hydra-console[{extra}]'")


class AccessError(HydraError):
    """The acting role may not do this."""


class CancelledError(HydraError):
    """Work was stopped on request; a search with a trial store goes on from there when repeated."""
