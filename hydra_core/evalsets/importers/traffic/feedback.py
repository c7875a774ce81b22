"""How well a request was answered: a number, or a label whose quality the operator says."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Final

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.traffic.rows import number

#: Labels that say plainly which way they point; they are proposed, never taken silently.
_GOOD: Final = frozenset(
    {
        *("good", "pass", "passed", "correct", "yes", "true", "positive", "resolved", "solved"),
        *("helpful", "accept", "accepted", "like", "up", "thumbs_up", "thumbs-up", "satisfied"),
        *("👍", "✅", "✓", "thumbs up"),
    }
)
_BAD: Final = frozenset(
    {
        *("bad", "fail", "failed", "incorrect", "wrong", "no", "false", "negative", "unresolved"),
        *("unsolved", "unhelpful", "reject", "rejected", "dislike", "down", "thumbs_down"),
        *("thumbs-down", "unsatisfied", "👎", "❌", "✗", "thumbs down"),
    }
)
_EMPTY: Final = frozenset({"na", "n/a", "nan", "null", "none"})
_MOST: Final = 10


@dataclass(frozen=True, slots=True)
class Feedback:
    """How well a request was answered: a number, or a label; neither where nobody said."""

    value: float = math.nan
    label: str = ""

    @property
    def absent(self) -> bool:
        """Whether nobody said anything."""
        return math.isnan(self.value) and not self.label


@dataclass(slots=True)
class Labels:
    """Label -> quality as the operator says, and which labels were met."""

    known: Mapping[str, float] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)

    def read(self, value: object) -> Feedback:
        """A cell as feedback: a number or percentage, a label, or neither where it is empty."""
        worth = number(value)
        if isinstance(value, str) and value.rstrip().endswith("%") and value not in self.known:
            worth = number(value.rstrip()[:-1]) / 100
            if not math.isnan(worth):
                return Feedback(worth)
        if isinstance(value, str) and value.strip() and (math.isnan(worth) or value in self.known):
            plain = value.strip()
            return Feedback() if plain.lower() in _EMPTY else Feedback(label=plain)
        return Feedback(worth)

    def quality(self, feedback: Feedback) -> float:
        """The feedback as a number; NaN where there is none, or its label has no quality."""
        written = f"{feedback.value:g}"
        if not feedback.label and written in self.known:
            feedback = Feedback(label=written)
        if not feedback.label:
            return feedback.value
        self.met[feedback.label] = self.met.get(feedback.label, 0) + 1
        return self.known.get(feedback.label, math.nan)

    def reason(self, feedback: Feedback) -> str:
        """Why a row without a quality is skipped."""
        return (
            f"the label {feedback.label[:60]!r} has no quality" if feedback.label else "no feedback"
        )

    def require_used(self) -> None:
        """Refuse labels that the operator names and no row has.

        Raises:
            EvalSetError: Naming them and those that were met.
        """
        unmet = [label for label in self.known if label not in self.met]
        if unmet:
            there = ", ".join(self._listed()) or "none"
            problems = [Problem(repr(one), "does not occur", f"labels: {there}") for one in unmet]
            raise EvalSetError("--label", problems)

    def remedy(self) -> str:
        """How to say what the labels mean; '' where none was met without a quality."""
        missing = [label for label in self.met if label not in self.known]
        if not missing:
            return ""
        worths = {one: likely_worth(one) for one in missing[:_MOST]}
        pairs = (f"{one}={'QUALITY' if w is None else f'{w:g}'}" for one, w in worths.items())
        stated = " ".join(f"--label {quote(pair)}" for pair in pairs)
        return f"labels found: {', '.join(self._listed())}; say what each is worth, {stated}"

    def _listed(self) -> list[str]:
        shown = sorted(self.met.items(), key=lambda one: (-one[1], one[0]))[:_MOST]
        return [f"{label[:60]} ({count})" for label, count in shown]


def likely_worth(label: str) -> float | None:
    """1 or 0 for a label that says plainly which way it points; somebody has to confirm it."""
    plain = label.strip().lower()
    return 1.0 if plain in _GOOD else 0.0 if plain in _BAD else None


def require_score(names: Sequence[str], wanted: str, source: str) -> None:
    """Refuse a score that is not there, and the lack of a choice where there are several.

    Raises:
        EvalSetError: Naming the scores there are.
    """
    listed = ", ".join(names[:_MOST]) or "none"
    if wanted and wanted not in names:
        raise EvalSetError.of(
            source, f"{wanted!r} does not occur", f"there are: {listed}", place="--score"
        )
    if not wanted and len(names) > 1:
        message, remedy = f"holds several scores: {listed}", "choose one with --score NAME"
        raise EvalSetError.of(source, message, remedy)


def require_range(values: Sequence[float], scale: float, source: str) -> None:
    """Refuse feedback that is no quality once it is divided by `scale`, with the way out.

    Raises:
        EvalSetError: Naming the values there are.
    """
    out = [value for value in values if not 0 <= value / scale <= 1]
    if not out:
        return
    distinct = sorted(set(values))
    counts = {f"{value:g}": values.count(value) for value in distinct}
    shown = ", ".join(f"{value} ({count:,})" for value, count in list(counts.items())[:_MOST])
    if min(out) < 0 and any(value % 1 for value in distinct):
        remedy = "choose a score from 0 to 1 of which more is better, or write it so in the files"
    elif min(out) < 0:
        worth = [f"--label={v}={0 if float(v) < 0 else 1 if float(v) > 0 else 'QUALITY'}"
                 for v in list(counts)[:_MOST]]  # fmt: skip
        remedy = f"say what each value is worth, {' '.join(worth)}"
    else:
        best = f"{100 if 10 < max(out) <= 100 else math.ceil(max(out))}"
        remedy = f"say which value means 1; where {best} is the best, --quality-scale {best}"
    message = f"{len(out):,} of {len(values):,} values are no quality from 0 to 1: {shown}"
    raise EvalSetError.of(source, message, remedy, place="feedback")


def parse_labels(pairs: Sequence[str]) -> dict[str, float]:
    """Label -> quality from `LABEL=QUALITY` texts.

    Raises:
        EvalSetError: A text of another form, a label twice, or a quality that is no number.
    """
    problems, known = [], {}
    for pair in pairs:
        label, equals, value = pair.rpartition("=")
        try:
            quality = float(value)
        except ValueError:
            quality = math.nan
        if not equals or not label or not math.isfinite(quality):
            message = "is not LABEL=QUALITY with a number"
            problems.append(Problem(repr(pair), message, "e.g. good=1"))
        elif label in known:
            problems.append(Problem(repr(pair), f"names {label} twice"))
        else:
            known[label] = quality
    EvalSetError.raise_any("--label", problems)
    return known
