"""The `evidence` section: benchmarks, and whether every derived capability has its evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from hydra_core.catalog.identifiers import id_problem, skeleton
from hydra_core.catalog.reading.fields import Interval, Section
from hydra_core.catalog.reading.nodes import MapNode, shown
from hydra_core.types import Benchmark

__all__ = ["MAX_BENCHMARKS", "missing_evidence", "read_benchmarks", "read_id", "unique"]

MAX_BENCHMARKS: Final = 500


def read_id(parent: Section, name: str, index: int, node: MapNode) -> tuple[str, Section]:
    """The id of the `index`-th entry of list `name`, and its section labelled with that id."""
    place = f"{parent.at(name)}[{index}]"
    found = Section(node, place, parent.problems).text("id", "give it a unique id")
    if found:
        place = f"{place} {found[:60]!r}"
        problem = id_problem(found)
        if problem is not None:
            Section(node, place, parent.problems).wrong("id", *problem)
    return found, Section(node, place, parent.problems)


def unique(section: Section, name: str, seen: dict[str, tuple[str, int]]) -> None:
    """Refuse an id that is, or looks like, one seen before; `seen` maps skeleton to id, line."""
    if not name:
        return
    twin, line = seen.setdefault(skeleton(name), (name, section.node.line))
    if line == section.node.line and twin == name:
        return
    if twin == name:
        section.wrong("id", f"is given twice, first on line {line}", "rename or remove one")
    else:
        message = f"{name!r} looks the same as {twin!r} on line {line}"
        section.wrong("id", message, "rename one; ids may not differ by case or look-alikes only")


def read_benchmarks(root: Section, dimensions: tuple[str, ...]) -> tuple[Benchmark, ...]:
    """All benchmarks that have an id; what is wrong with them is recorded."""
    remedy = "give evidence: {benchmarks: [...]}"
    evidence = root.section("evidence", remedy)
    if evidence is None:
        return ()
    evidence.known(("benchmarks",))
    benchmarks: list[Benchmark] = []
    seen: dict[str, tuple[str, int]] = {}
    for index, node in enumerate(evidence.items("benchmarks", remedy, limit=MAX_BENCHMARKS)):
        if not isinstance(node, MapNode):
            place = f"evidence.benchmarks[{index}]"
            message = f"must be a mapping, got {shown(node)}"
            root.problems.add(place, node.line, message, "give id, importance and weights")
            continue
        name, section = read_id(evidence, "benchmarks", index, node)
        unique(section, name, seen)
        benchmark = _benchmark(section, name, dimensions)
        if name and all(other.id != name for other in benchmarks):
            benchmarks.append(benchmark)
    return tuple(benchmarks)


def _benchmark(section: Section, name: str, dimensions: tuple[str, ...]) -> Benchmark:
    section.known(("id", "importance", "weights"))
    importance = section.number("importance", Interval(0.0), "alpha_b >= 0, such as 0.3")
    weights = section.section("weights", "omega per dimension, such as {reasoning: 0.5}")
    omega: dict[str, float] = {}
    if weights is not None:
        remedy = "how much it exercises this dimension, 0 to 1; leave out what it does not"
        omega = weights.rates(dimensions, "dimension", remedy)
        if dimensions and len(omega) == len(weights.node.entries) and not any(omega.values()):
            section.wrong("weights", "exercises no dimension", "give one > 0, or remove it")
    row = tuple(omega.get(dimension, 0.0) for dimension in dimensions)
    return Benchmark(name, 0.0 if importance is None else importance, row)


def missing_evidence(
    model: Section,
    dimensions: Sequence[str],
    benchmarks: Sequence[Benchmark],
    given: Collection[str],
    overridden: Collection[str],
) -> None:
    """Record where a model lacks a rate that a derived capability stands on. Never imputed.

    A benchmark counts for a model where its importance is > 0 and it exercises a dimension that
    the model does not override by hand.

    Args:
        given: The benchmarks the model's `scores` names.
        overridden: The dimensions its `capabilities` sets by hand.
    """
    counting = [benchmark for benchmark in benchmarks if benchmark.importance > 0]
    derived = [k for k, name in enumerate(dimensions) if name not in overridden]
    lacking = [
        benchmark.id
        for benchmark in counting
        if benchmark.id not in given and any(benchmark.weights[k] for k in derived)
    ]
    if lacking:
        names = ", ".join(map(repr, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
        message = f"misses {names}: a missing rate is never filled in"
        remedy = "add the measured rate, set the importance to 0, or override the capabilities"
        model.wrong("scores", message, remedy)
    bare = [dimensions[k] for k in derived if not any(b.weights[k] for b in counting)]
    if bare:
        message = f"{', '.join(map(repr, bare))}: no benchmark with importance > 0 exercises it"
        remedy = "give a benchmark a weight on it, or override the capability by hand"
        model.wrong("capabilities", message, remedy)
