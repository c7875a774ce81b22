"""What every adapter makes of a harness's file: answers with their scores, and an eval set."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from os.path import commonprefix
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from hydra_core.base.errors import EvalSetError
from hydra_core.base.spelling import counted_that
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.json_document import value_at
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import Asked, asked_in
from hydra_core.evalsets.importers.traffic.rows import number
from hydra_core.evalsets.importers.traffic.served import FIGURES, Served, Traffic

_STAMP: Final = re.compile(r"[_-]?\d{4}-\d{2}-\d{2}[T_]\d{2}-\d{2}-\d{2}[\d.+-]*$")


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer of one model, with every score that the file has of it.

    Attributes:
        default: The score that the harness itself counts, '' where it has none such.
        effort: How much the model was asked to reason, '' where the file does not say.
    """

    served: Served
    scores: Mapping[str, Feedback]
    default: str = ""
    effort: str = ""


@dataclass(slots=True)
class Reading:
    """What an adapter is asked, and where it counts what it leaves out.

    Attributes:
        problems: Task -> its message, for harnesses that keep the messages apart.
        beside: Files that another one is read with, such as HELM's statistics.
        several_files: Whether more than one file is read, which may share the numbers of tests.
    """

    traffic: Traffic
    budget: Budget
    problems: Mapping[str, str] = field(default_factory=dict)
    beside: Sequence[TableFile] = ()
    several_files: bool = False

    def asked(self, row: Mapping[str, Any], usual: str) -> Asked:
        """The message of a row, where the operator says it stands, else at its usual place."""
        return asked_in(value_at(row, self.traffic.given.text_path or usual))


@dataclass(frozen=True, slots=True)
class Adapter:
    """Reads the files of one harness.

    Attributes:
        signs: Names at a file's beginning that together only this harness writes.
        models_in_names: Whether a model is known by its file's name alone; answers have '' for it.
    """

    name: str
    signs: frozenset[str]
    read: Callable[[TableFile, Reading], Iterable[Scored]]
    models_in_names: bool = False


def scored_draft(answers: Sequence[Scored], traffic: Traffic) -> Draft:
    """The eval set of these answers; repeats of a query by a model are averaged and counted.

    Raises:
        EvalSetError: Several scores and none chosen, nothing left, or rows that are not valid.
    """
    pairs: dict[tuple[str, str], list[Served]] = {}
    answers = _by_effort(answers, traffic)
    for row in _told_apart(list(_chosen(answers, traffic)), traffic):
        if (rated := traffic.rated(row)) is not None:
            pairs.setdefault((row.query_id, row.model), []).append(traffic.priced(rated))
    _require_shared_texts(pairs)
    repeated = [len(group) for group in pairs.values() if len(group) > 1]
    if repeated:
        are = counted_that(len(repeated), "outcome", "is", "are")
        traffic.warnings.append(f"{are} the mean of several answers (up to {max(repeated)})")
    traffic.rows += [_mean(group) for group in pairs.values()]
    return traffic.draft("harness files")


def _by_effort(answers: Sequence[Scored], traffic: Traffic) -> list[Scored]:
    """The answers, a model that was run at several efforts as one model for each of them."""
    efforts: dict[str, set[str]] = {}
    for one in answers:
        efforts.setdefault(one.served.model, set()).add(one.effort)
    several = {model for model, found in efforts.items() if len(found) > 1}
    names = {f"{model}:{one}" for model in several for one in efforts[model] - {""}}
    if names:
        traffic.warnings.append(
            f"one model was run at several efforts, of which each is a model: "
            f"{', '.join(sorted(names))}; name them with --model ID=NAME"
        )
    return [
        replace(one, served=replace(one.served, model=f"{one.served.model}:{one.effort}"))
        if one.effort and one.served.model in several
        else one
        for one in answers
    ]


def _chosen(answers: Sequence[Scored], traffic: Traffic) -> Iterator[Served]:
    """The answers with the one score that counts; tasks may each have a score of their own."""
    names = list(dict.fromkeys(name for answer in answers for name in answer.scores))
    of_query: dict[str, set[str]] = {}
    for answer in (one for one in answers if not one.default):
        of_query.setdefault(answer.served.query_id, set()).update(answer.scores)
    undecided = {name for found in of_query.values() if len(found) > 1 for name in found}
    traffic.choose_score([name for name in names if name in undecided], "scores", names)
    wanted = traffic.given.score
    counts: Counter[str] = Counter()
    for answer in answers:
        name = wanted or answer.default or next(iter(answer.scores), "")
        if name in answer.scores:
            counts[name] += 1
            yield replace(answer.served, feedback=answer.scores[name])
        elif answer.scores:
            reason = f"scored as {next(iter(answer.scores))}, not as {name}"
            traffic.skip(reason, answer.served.query_id)
        else:
            yield answer.served
    if len(counts) > 1:
        shown = ", ".join(f"{name} ({count:,} answers)" for name, count in counts.items())
        traffic.warnings.append(f"the quality is another score in each task: {shown}")


def _told_apart(rows: Sequence[Served], traffic: Traffic) -> Iterator[Served]:
    """The rows, with ids of their own for questions of several tasks that share one id."""
    asked: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        asked.setdefault((row.query_id, row.model), set()).add(row.asked.text)
    several = {query for (query, _), texts in asked.items() if len(texts - {""}) > 1}
    if several:
        name = counted_that(len(several), "id", "names", "name")
        traffic.warnings.append(
            f"{name} several questions (e.g. {min(several)}): each question has an id of its own"
        )
    for row in rows:
        mark = sha256(row.asked.text.encode("utf-8", "replace")).hexdigest()[:8]
        own = f"{row.query_id}-{mark}" if row.query_id in several else row.query_id
        yield replace(row, query_id=own)


def _require_shared_texts(pairs: Mapping[tuple[str, str], Sequence[Served]]) -> None:
    """Refuse queries that each model was asked in words of its own."""
    texts: dict[str, set[str]] = {}
    for (query_id, _), group in pairs.items():
        texts.setdefault(query_id, set()).update(row.asked.text for row in group)
    several = [query_id for query_id, found in texts.items() if len(found) > 1]
    if several:
        message = (
            f"{counted_that(len(several), 'query', 'has', 'have')} other words for each model "
            f"(e.g. {several[0]})"
        )
        remedy = "say where words stand that all share, such as --map text=doc.question"
        raise EvalSetError.of("harness files", message, remedy)


def _mean(group: Sequence[Served]) -> Served:
    """One outcome of several answers: the mean of each number that all of them have."""
    if len(group) == 1:
        return group[0]
    means: dict[str, Any] = {name: fmean(getattr(row, name) for row in group) for name in FIGURES}
    quality = fmean(row.feedback.value for row in group)
    return replace(group[0], feedback=Feedback(quality), **means)


def as_feedback(value: object) -> Feedback:
    """A score: a number, true or false, or a label; of several true and false, their share."""
    if isinstance(value, list) and value and all(isinstance(one, bool) for one in value):
        value = fmean(value)
    worth = number(value)
    if math.isnan(worth) and isinstance(value, str) and value.strip():
        return Feedback(label=value.strip())
    return Feedback(worth)


def models_of_files(questions: Mapping[TableFile, set[str]]) -> dict[TableFile, str]:
    """File -> the model its name tells: what sets the names of one task's files apart, else the
    folder.

    Args:
        questions: What each file answers. Files that share no question are of several tasks.

    Raises:
        EvalSetError: Files of several tasks whose names do not say which are of one model.
    """
    tasks = _tasks(questions)
    stems = {file: _stem(file.name) for file in questions}
    paths = [file for file in questions if isinstance(file, Path)]
    alike = any(len({stems[file] for file in task}) < len(task) for task in tasks)
    if len(paths) == len(questions) and (alike or all(map(_lies_with_its_model, paths))):
        return {path: path.parent.name.replace("__", "/") for path in paths}
    if len(tasks) == 1:
        return dict(zip(questions, _apart(list(stems.values())), strict=True))
    found: dict[TableFile, str] = {}
    for task in (task for task in tasks if len(task) > 1):
        names = _apart([stems[file] for file in task])
        found |= zip(task, _reversed(_apart(_reversed(names))), strict=True)
    known = sorted({*found.values()} or _shared(list(stems.values())), key=len, reverse=True)
    for file in (file for file in questions if file not in found):
        own = [name for name in known if _holds(stems[file], name)]
        if not own:
            message = "shares no question with the other files, and its name no model"
            remedy = "end the names of one model's files alike, such as samples_gsm8k_llama.jsonl, "
            remedy += "or import each file alone"
            raise EvalSetError.of(file.name, message, remedy)
        found[file] = own[0]
    return found


def _tasks(questions: Mapping[TableFile, set[str]]) -> list[list[TableFile]]:
    """The files that share questions with each other."""
    tasks: list[tuple[set[str], list[TableFile]]] = []
    for file, own in questions.items():
        touching = [task for task in tasks if not task[0].isdisjoint(own)]
        tasks = [task for task in tasks if task not in touching]
        files = [one for _, listed in touching for one in listed]
        tasks.append((own.union(*(known for known, _ in touching)), [*files, file]))
    return [files for _, files in tasks]


def _apart(stems: Sequence[str]) -> list[str]:
    """Names without the parts that all of them begin with."""
    distinct = list(dict.fromkeys(stems))
    shared = commonprefix([stem.split("_")[:-1] for stem in distinct]) if len(distinct) > 1 else ()
    return ["_".join(stem.split("_")[len(shared) :]) for stem in stems]


def _reversed(stems: Sequence[str]) -> list[str]:
    return ["_".join(reversed(stem.split("_"))) for stem in stems]


def _shared(stems: Sequence[str]) -> set[str]:
    """The parts that all names end or begin with, '' excepted."""
    parts = [stem.split("_") for stem in stems]
    ends = [commonprefix([list(reversed(one)) for one in parts])[::-1], commonprefix(parts)]
    return {"_".join(next(filter(None, ends), []))} - {""}


def _holds(stem: str, name: str) -> bool:
    """Whether a name of a file ends or begins with the name of a model."""
    return stem == name or stem.endswith(f"_{name}") or stem.startswith(f"{name}_")


def _lies_with_its_model(path: Path) -> bool:
    """Whether lm-evaluation-harness named it by task and time, in the folder of a run's model."""
    stamped = path.name.startswith("samples_") and _STAMP.search(path.stem) is not None
    return stamped and ("__" in path.parent.name or any(path.parent.glob("results_*.json")))


def _stem(name: str) -> str:
    plain = re.sub(r"(?:\.(?:jsonl?|gz|zip|eval))+$", "", Path(name).name)
    plain = re.sub(r"[_.-]eval_results$", "", plain)
    return _STAMP.sub("", plain).removeprefix("samples_")
