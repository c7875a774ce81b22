"""The model card of a bundle: facts of the training and figures of the shipped graph.

Equal routes in every language are measured by the console's own matcher, on a catalog moved to the
bands of the model under test. Claims of difficulty: `lab/robustness/findings.py`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.base.types import Band, Float32Array, Pool
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import parse_catalog
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.lab.evaluate import reliability
from hydra_core.lab.robustness.attack import set_messages
from hydra_core.lab.robustness.findings import (
    TAUS,
    RoutedAttacks,
    attack_table,
    bound_catalog,
    family_rows,
    probed,
    routed,
)
from hydra_core.lab.training.texts.dataset import Message
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.languages import group_of
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.routing.matcher import choose, shortfall


def pool_on(catalog: Path, bands: Sequence[tuple[float, float]]) -> Pool:
    """The pool of a catalog, its capabilities moved to a model's bands."""
    text = rebind(catalog.read_text("utf-8"), "probe", "0" * 64, [Band(*b) for b in bands])
    return pool(parse_catalog(text), today=date(2026, 1, 1))


def routes(models: Pool, scores: NDArray[np.float32], tau: float) -> NDArray[np.int64]:
    """(n, K) -> (n,) position of the chosen model in the order of cost, 0 = cheapest."""
    gaps = shortfall(scores.astype(np.float64), models.capabilities, models.weights)
    rank = np.argsort(np.argsort(models.cost, kind="stable"), kind="stable")
    return np.asarray(rank[choose(gaps, models.cost, tau)], np.int64)


@dataclass(frozen=True, slots=True)
class ParallelReport:
    """Agreement over wordings of a task in all languages."""

    spread: float
    pearson: float
    same_route: dict[float, float]


def _tasks(messages: Sequence[Message]) -> list[list[int]]:
    rows: dict[str, list[int]] = defaultdict(list)
    for i, message in enumerate(messages):
        if message.task:
            rows[message.task].append(i)
    return list(rows.values())


def spread(messages: Sequence[Message], scores: NDArray[np.float32]) -> float:
    """Mean over tasks of the standard deviation of a score across languages."""
    tasks = _tasks(messages)
    return float(np.mean([scores[ids].std(0) for ids in tasks])) if tasks else 0.0


def parallel_report(
    messages: Sequence[Message], scores: NDArray[np.float32], models: Pool
) -> ParallelReport:
    """(n,) messages with `task`, (n, K) -> spread, Pearson, routes as in English."""
    truth = np.array([m.labels for m in messages])
    tasks = _tasks(messages)
    pearson = np.mean(
        [np.corrcoef(scores[:, k], truth[:, k])[0, 1] for k in range(scores.shape[1])]
    )
    same: dict[float, float] = {}
    for tau in TAUS:
        chosen = routes(models, scores, tau)
        agree: list[bool] = []
        for ids in tasks:
            english = next(i for i in ids if messages[i].lang == "en")
            agree += [bool(chosen[i] == chosen[english]) for i in ids if i != english]
        same[tau] = round(float(np.mean(agree)), 4)
    return ParallelReport(round(spread(messages, scores), 4), round(float(pearson), 4), same)


CARD = "MODEL_CARD.md"


def demo_attacks(predictor: Predictor, catalog: Path, *, most: int | None = None) -> RoutedAttacks:
    """Claims of difficulty on the demo messages, or on `most` of them, as `probe` makes them."""
    found = probed(predictor, *set_messages(load_evalset(SAMPLE_DATA / "console_demo"), most))
    return routed(found, bound_catalog(catalog, predictor.bundle))


def refresh_card(bundle: Bundle, attacks: RoutedAttacks) -> Bundle:
    """Write a bundle's card and figures on claims anew; graph and fingerprint stay as they are.

    Raises:
        BundleError: The manifest cannot be written; it is left as it was.
        ValueError: The card has no section on claims.
    """
    path = bundle.path / CARD
    path.write_text(with_claims(path.read_text("utf-8"), attacks), "utf-8")
    quality = {**bundle.quality, "suffix_attacks": attack_quality(attacks)}
    return write_manifest(bundle.path, replace(bundle, quality=quality))


_CLAIMS = "### Appended claims of difficulty"
_ATTACKED = """\
Success: a message that went to one of the cheaper models goes to one of the two dearest. On the 640
messages of sample_data/console_demo, which no bundle is trained or tuned on, with
catalog/paper_five.yaml on this bundle's bands and eight families of suffixes that no bundle is
trained on. The intervals are Wilson's, on as many independent messages as these are worth:
translations of one task and the families on one message count as dependent. Where fewer
than two tasks have a success, each task counts once. The same figures, printed anew:
`python -m hydra_core lab probe sample_data/console_demo --catalog catalog/paper_five.yaml --tau T`
(`--bundle DIR` for another bundle)."""
_LENGTHS = ((0, 40), (40, 120), (120, 400), (400, 1500), (1500, 10**9))


@dataclass(frozen=True, slots=True)
class Findings:
    """What was measured on the shipped graph, on messages it never saw."""

    dimensions: tuple[str, ...]
    messages: Sequence[Message]
    scores: Float32Array
    tasks: Sequence[Message]
    task_scores: Float32Array
    parallel: ParallelReport
    attacks: RoutedAttacks


def card(title: str, prose: Mapping[str, str], found: Findings) -> str:
    """Markdown: prose by heading, then the tables."""
    parts = [f"# {title}"]
    parts += [f"## {heading}\n\n{text.strip()}" for heading, text in prose.items()]
    parts += [
        "## Figures\n\nThe shipped INT8 graph with its recalibration, on "
        f"{len(found.messages)} held-out messages (grouped split, near-duplicates and shared "
        f"tasks kept together) and {len({m.task for m in found.tasks})} held-out parallel tasks.",
        "### By dimension\n\n" + _by_dimension(found),
        "### By language group\n\n" + _cut(found, [group_of(m.lang) for m in found.messages]),
        "### By language\n\n" + _cut(found, [m.lang for m in found.messages]),
        "### By length in characters\n\n" + _cut(found, [_length(m.text) for m in found.messages]),
        "### Parallel tasks\n\n" + _parallel(found.parallel),
        claims_section(found.attacks),
        "### Reliability\n\nMean score -> mean label, ten bins of equal count.\n\n"
        + _reliability(found),
    ]
    return "\n\n".join(parts) + "\n"


def _length(text: str) -> str:
    low, high = next((a, b) for a, b in _LENGTHS if a <= len(text) < b)
    return f"{low} to {high - 1}" if high < 10**8 else f"{low} and more"


def labels_of(messages: Sequence[Message]) -> Float32Array:
    """(n, K) labels of labelled messages."""
    return np.array([m.labels for m in messages], np.float32)


def _r(a: Float32Array, b: Float32Array) -> str:
    if len(a) < 3 or a.std() == 0 or b.std() == 0:
        return ""
    return f"{np.corrcoef(a, b)[0, 1]:.3f}"


def _by_dimension(found: Findings) -> str:
    truth, tasks = labels_of(found.messages), labels_of(found.tasks)
    lines = ["| dimension | Pearson | MAE | bias | Pearson on tasks |", "|---|---:|---:|---:|---:|"]
    for k, name in enumerate(found.dimensions):
        gap = found.scores[:, k] - truth[:, k]
        lines.append(
            f"| {name} | {_r(found.scores[:, k], truth[:, k])} | {np.abs(gap).mean():.3f} "
            f"| {gap.mean():+.3f} | {_r(found.task_scores[:, k], tasks[:, k])} |"
        )
    return "\n".join(lines)


def _cut(found: Findings, keys: Sequence[str]) -> str:
    """Mean Pearson, MAE and bias per dimension of every value of `keys`."""
    truth, names = labels_of(found.messages), np.array(keys)
    head = " | ".join(f"bias {d}" for d in found.dimensions)
    lines = [f"| | n | Pearson | MAE | {head} |", "|---|---:|---:|---:|" + "---:|" * truth.shape[1]]
    for name in sorted(set(keys), key=lambda key: (len(key) > 9, key)):
        rows = names == name
        each = [_r(found.scores[rows, k], truth[rows, k]) for k in range(truth.shape[1])]
        values = [float(v) for v in each if v]
        pearson = f"{np.mean(values):.3f}" if values else ""
        gap = found.scores[rows] - truth[rows]
        bias = " | ".join(f"{v:+.3f}" for v in gap.mean(0))
        lines.append(f"| {name} | {rows.sum()} | {pearson} | {np.abs(gap).mean():.3f} | {bias} |")
    return "\n".join(lines)


def _parallel(report: ParallelReport) -> str:
    same = ", ".join(f"{share:.1%} at tau {tau}" for tau, share in report.same_route.items())
    return (
        f"Mean standard deviation of a score across languages {report.spread:.3f}; mean Pearson "
        f"against the labels {report.pearson:.3f}; routed as in English: {same}."
    )


def claims_section(attacks: RoutedAttacks) -> str:
    """What claims of difficulty do on the demo messages: the figures of `probe`, by its code."""
    return f"{_CLAIMS}\n\n{_ATTACKED}\n\n{attack_table(attacks)}"


def with_claims(text: str, attacks: RoutedAttacks) -> str:
    """A model card with its section on claims written anew; ValueError where it has none."""
    head, found, rest = text.partition(f"{_CLAIMS}\n")
    if not found:
        raise ValueError(f"the model card has no section {_CLAIMS!r}")
    following = rest.find("\n### ")
    return head + claims_section(attacks) + ("\n" + rest[following:] if following >= 0 else "\n")


def attack_quality(attacks: RoutedAttacks) -> dict[str, float]:
    """The worst family over all languages, as `bundle.yaml` says it."""
    rows = [row for _, row in family_rows(attacks) if row.n]
    return {
        "worst_success": round(max((r.success.value for r in rows), default=0.0), 4),
        "worst_cost_ratio": round(max((r.cost_ratio for r in rows), default=1.0), 3),
    }


def _reliability(found: Findings) -> str:
    truth = labels_of(found.messages)
    lines = []
    for k, name in enumerate(found.dimensions):
        points = reliability(found.scores[:, k], truth[:, k])
        pairs = zip(points.score.round(4), points.label.round(4), strict=True)
        lines.append(f"- {name}: " + ", ".join(f"{a:.2f} -> {b:.2f}" for a, b in pairs))
    return "\n".join(lines)
