"""People as graders: answers go to them blind, in the form of the label audit, and come back."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import LabelError
from hydra_core.base.intervals import Interval
from hydra_core.base.whole_file import whole_file
from hydra_core.lab.audit.tables import RatingRow, alpha_interval, from_csv, on_unit_scale
from hydra_core.lab.collect.graders import Kind, agreement
from hydra_core.lab.collect.plan import Asked, Cell, CollectPlan, answer_call
from hydra_core.lab.labeling.calls import sampled
from hydra_core.lab.labeling.ledger import Record

#: What the audit calls a dimension.
SCORE: Final = "quality"
#: Of a run: the forms filled in, one file a person.
FILLED: Final = "grades"
_CONSOLE: Final = "the console"
_SEED: Final = 1742
#: Answer's id -> rater -> grade in [0, 1].
Grades = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Blind:
    """One answer as a person sees it: whose it is cannot be seen.

    Attributes:
        id: The same in every run; of the request and the answer, not of the model.
        request: With what came before it in its conversation.
        reference: What would be right, '' where the message brings none.
        first: For an answer that is graded twice: its id the first time; else ''.
    """

    id: str
    request: str
    reference: str
    answer: str
    first: str = ""


def id_of(message: Asked, answer: str, time: int = 0) -> str:
    """An answer's id; equal answers to one message have one, so that they are graded once."""
    asked = json.dumps([message.id, answer, time])
    # with a letter first: a spreadsheet takes digits for a number
    return "a" + text_sha256(asked)[:12]


def to_grade(plan: CollectPlan, messages: Sequence[Asked], record: Record) -> list[Blind]:
    """What people are to grade, in random order, a share of it twice."""
    found: dict[str, Blind] = {}
    for message in messages:
        grader = plan.settings.graders[message.grader]
        if grader.kind is not Kind.PEOPLE:
            continue
        reference = message.own.get("reference")
        shown = reference if isinstance(reference, str) else json.dumps(reference)
        for model in plan.models:
            cell = Cell(message, model)
            answer = record.answered.get(answer_call(cell))
            if answer is None or (first := id_of(message, answer)) in found:
                continue
            said = [f"{who.capitalize()}: {what}" for who, what in message.said]
            asked = "\n\n".join(said) if len(said) > 1 else message.text
            texts = (asked, "" if reference in (None, "") else shown, answer)
            found[first] = Blind(first, *texts)
            if sampled(cell, "twice", grader.twice_share):
                second = id_of(message, answer, 1)
                found[second] = Blind(second, *texts, first)
    return [found[one] for one in sorted(found)]  # ids are digests: their order is random


def forms_of(run: Path) -> dict[str, tuple[Blind, ...]]:
    """Name -> the answers on each form of a run; LabelError where a form is damaged."""
    found = {}
    for number in range(1, sum(1 for _ in run.glob("form-*.jsonl")) + 1):
        path = run / f"form-{number}.jsonl"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            found[path.stem] = tuple(Blind(**json.loads(line)) for line in lines)
        except (OSError, ValueError, TypeError) as error:
            remedy = "remove it and what was filled in for it; the same command writes it anew"
            raise LabelError.of(str(path), "is missing or damaged", remedy) from error
    return found


def write_form(run: Path, answers: Sequence[Blind]) -> tuple[Path, pd.DataFrame] | None:
    """Write what is on no form yet to a new one.

    Returns:
        Where people fill it in, and the table to write there; None where nothing is new. What
        people have in their hands is never written again.
    """
    forms = forms_of(run)
    known = {one.id for form in forms.values() for one in form}
    left = [one for one in answers if one.id not in known]
    if not left:
        return None
    name = f"form-{len(forms) + 1}"
    with whole_file(run / f"{name}.jsonl") as target:
        lines = (json.dumps(asdict(one), ensure_ascii=False) for one in left)
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    table = pd.DataFrame({"query_id": [one.id for one in left], "rater": "", SCORE: "", "note": ""})
    for column in ("request", "reference", "answer"):
        table[column] = [getattr(one, column) for one in left]
    (run / FILLED).mkdir(exist_ok=True)
    return run / FILLED / f"{name}.csv", table


def keep_filled(run: Path, files: Sequence[Path]) -> None:
    """Check filled-in forms and copy them into the run, so that later runs read them too.

    Raises:
        EvalSetError: A file is damaged; nothing was kept.
        LabelError: The run has no form, or another file of that name holds other grades.
    """
    if files and not forms_of(run):
        remedy = "run collect without --grades first: it writes what people grade"
        raise LabelError.of(str(run), "has no form yet", remedy)
    wanted: dict[Path, Path] = {}
    for path in files:
        kept = run / FILLED / path.name
        rows = set(_filled(run, path))
        there = set(_filled(run, kept)) if kept.is_file() else set[RatingRow]()
        if kept in wanted or not there <= rows:
            raise LabelError.of(
                str(path), f"{kept} holds other grades", "name each file after its rater"
            )
        wanted[kept] = path
    for kept, path in wanted.items():
        if kept.resolve() != path.resolve():
            with whole_file(kept) as target:
                shutil.copyfile(path, target)


def _filled(run: Path, path: Path) -> list[RatingRow]:
    ids = [one.id for form in forms_of(run).values() for one in form]
    return from_csv(path, (SCORE,), ids, rater=path.stem)


def read_grades(run: Path, in_console: Iterable[RatingRow]) -> Grades:
    """What people graded, in files and in the console.

    Raises:
        EvalSetError: A file is damaged, with row, value and remedy.
        LabelError: One rater grades an answer in two ways.
    """
    found: dict[str, dict[str, float]] = {}
    places: dict[tuple[str, str], str] = {}
    sources = {_CONSOLE: in_console}
    sources |= {str(path): _filled(run, path) for path in sorted((run / FILLED).glob("*.csv"))}
    for place, rows in sources.items():
        for answer, rater, (score,), _ in rows:
            grade = float(on_unit_scale(np.array(score)))
            other = found.setdefault(answer, {}).setdefault(rater, grade)
            if other != grade:
                message = f"{rater} grades it {score:g} here and {1 + 4 * other:g} in "
                message += places[answer, rater]
                raise LabelError.of(place, message, "keep one of them", place=f"answer {answer}")
            places.setdefault((answer, rater), place)
    return found


@dataclass(frozen=True, slots=True)
class People:
    """How far people are and how well they agree.

    Attributes:
        answers: To grade, the repeated ones too; `graded` of them are.
        twice: Share of answers that one person graded twice and the same; None without any.
        alpha: Krippendorff's alpha of the raters; None with fewer than two.
    """

    answers: int
    graded: int
    raters: int
    twice: float | None
    alpha: Interval | None

    def to_dict(self) -> dict[str, Any]:
        alpha = None if self.alpha is None else [self.alpha.value, self.alpha.lo, self.alpha.hi]
        return {"answers": self.answers, "graded": self.graded, "raters": self.raters,
                "twice_agreement": self.twice, "alpha": alpha}  # fmt: skip


def people_of(answers: Sequence[Blind], grades: Grades) -> People | None:
    """What came back of what people are to grade; None where they grade nothing."""
    if not answers:
        return None
    pairs = [
        (grades[one.first][rater], again)
        for one in answers
        if one.first in grades
        for rater, again in grades.get(one.id, {}).items()
        if rater in grades[one.first]
    ]
    raters = sorted({rater for one in answers for rater in grades.get(one.id, {})})
    alpha = None
    if len(raters) > 1:
        table = [[grades.get(one.id, {}).get(rater, np.nan) for one in answers] for rater in raters]
        clusters = np.unique([one.request for one in answers], return_inverse=True)[1]
        rng = np.random.default_rng(_SEED)
        found = alpha_interval(np.array(table), rng=rng, clusters=clusters)
        alpha = found if found.known else None  # one request shows no spread
    graded = sum(one.id in grades for one in answers)
    return People(len(answers), graded, len(raters), agreement(pairs), alpha)
