"""Release: the one YAML file that `validate` accepts and a router loads, with where it came from.

A release is the catalog's own text, byte for byte, below a block of comments that tells its
provenance. The block holds the digest of what is below it, so that a later edit by hand shows.
What is measured at publish is kept with the revision; tables show revisions, changes and models.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Final

import pandas as pd

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import StoreError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import counted
from hydra_core.base.types import Catalog, CostBasis, Policy, Rule
from hydra_core.base.whole_file import whole_file
from hydra_core.base.workspace import OUTCOME_MODELS
from hydra_core.catalog import CatalogDocument, compensated_weights, parse_catalog
from hydra_core.catalog.diff import Change, ChangeKind
from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.evalsets.folders import EvalSetInfo
from hydra_core.export.foreign import comments
from hydra_core.outcome_model.format import FIGURES, HEADS, LEARNED, MANIFEST, catalog_outcome_model
from hydra_core.replay.compare import Replayed
from hydra_core.store.records import Revision

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)


def portable(text: str) -> str:
    """The catalog text with a path to its outcome model that holds wherever both are copied to.

    A path within the catalog's own folder stays as it is, and so does the text.

    Raises:
        CatalogError: `text` is not a valid catalog.
    """
    named = parse_catalog(text, source="the release").outcome_model
    if named is None:
        return text
    path = PurePath(named.path)
    if not path.is_absolute() and ".." not in path.parts:
        return text
    document = CatalogDocument.parse(text, "the release")
    document.set("outcome_model", "path", f"{OUTCOME_MODELS}/{path.name}")
    return document.text()


def release_archive(text: str, catalog: Catalog, provenance: Provenance, name: str) -> bytes:
    """The release as `<name>.yaml`, and the folder of its outcome model where it says it lies.

    Args:
        catalog: That of `text`, with the folder that its paths start from.

    Raises:
        CatalogError: `text` is not a valid catalog.
        OutcomeModelError: The outcome model is missing, damaged or another one.
        MismatchError: It was learned with another predictor bundle.
    """
    model = catalog_outcome_model(catalog)
    moved = portable(text)
    named = parse_catalog(moved, source="the release").outcome_model
    assert named is not None
    files = {f"{name}.yaml": release_text(moved, provenance).encode()}
    for file in (MANIFEST, HEADS, LEARNED, FIGURES):
        files[f"{PurePath(named.path).as_posix()}/{file}"] = (model.path / file).read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, _MOMENT), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


_FIRST: Final = "# ===== HyDRA release ====="
_LAST: Final = "# ===== end of the release's provenance; the catalog begins below ====="
_DIGEST: Final = "# catalog sha256: "


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a release comes from.

    Attributes:
        revision: The store's number, None for a catalog that was never published.
        published_as: The store's name for the catalog, '' likewise.
        published_at: With a time zone; of the export for one that was not published.
        evalset: Name of the eval set, '' where nothing was measured; `synthetic` where simulated.
        evalset_digest: Its digest (hex).
        costs: Which prices the measured costs stand on, '' where that was not kept.
        baseline: The model that savings are measured against, '' likewise.
        unknown: Share of the traffic that goes to models without outcomes.
        metrics: Name -> measured value with its 95 % interval.
    """

    revision: int | None
    author: str
    note: str
    published_at: datetime
    published_as: str = ""
    evalset: str = ""
    evalset_digest: str = ""
    synthetic: bool = False
    costs: str = ""
    baseline: str = ""
    unknown: float = 0.0
    metrics: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """Whether a release still is what was written: the digest it states and the one it has."""

    stated: str
    found: str

    @property
    def intact(self) -> bool:
        """Whether nothing below the block was changed."""
        return self.stated == self.found


def release_text(text: str, provenance: Provenance) -> str:
    """The catalog `text` below its provenance; the block of an earlier release is replaced.

    Raises:
        CatalogError: `text` is not a valid catalog.
    """
    body = without_header(text)
    catalog = parse_catalog(body, source="the release")
    newline = "\r\n" if "\r\n" in body else "\n"
    lines = [_FIRST, *header_lines(catalog, provenance), _LAST]
    released = newline.join([*lines, body])
    parse_catalog(released, source="the release")
    return released


def without_header(text: str) -> str:
    """The catalog's own text: what stands below the block of a release, or all of it."""
    body = text.removeprefix("\ufeff")
    if not body.startswith(_FIRST):
        return body
    _, mark, below = body.partition(_LAST)
    return below.removeprefix("\r").removeprefix("\n") if mark else body


def check_release(text: str) -> ReleaseCheck | None:
    """Compare a release with the digest it states; None where `text` is no release."""
    body = without_header(text)
    if body == text.removeprefix("\ufeff"):
        return None
    block = text[: len(text) - len(body)].splitlines()
    stated = [line.removeprefix(_DIGEST) for line in block if line.startswith(_DIGEST)]
    return ReleaseCheck(stated[0] if stated else "", text_sha256(body))


def with_policy(text: str, policy: Policy) -> str:
    """The catalog text with an operating point written into it: rule, tau or V, stored weights.

    Raises:
        CatalogError: The text or the numbers are not valid.
    """
    catalog = parse_catalog(text)
    document = CatalogDocument.parse(text)
    own = catalog.policy
    if policy.tau != own.tau:
        document.set("policy", "tau", float(policy.tau))
    if policy.rule is not own.rule:
        document.set("policy", "rule", policy.rule.value)
    if policy.value_usd is not None and policy.value_usd != own.value_usd:
        document.set("policy", "value_usd", float(policy.value_usd))
    rows = zip(catalog.dimensions, own.weights, policy.weights, strict=True)
    for dimension, old, new in rows:
        if new != old:
            document.set("policy", "weights", dimension, float(new))
    parse_catalog(document.text())
    return document.text()


def write_release(path: Path, text: str) -> None:
    """Write a valid catalog to `path`: a reader sees the old file or the new one, never a part.

    Raises:
        CatalogError: `text` is not a valid catalog; the file is left as it was.
        StoreError: It could not be written; the file is left as it was.
    """
    parse_catalog(text, source=path.name)
    try:
        with whole_file(path) as fresh:
            fresh.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
            fresh.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise StoreError(f"{path} could not be written and is unchanged: {error}") from error


def header_lines(catalog: Catalog, provenance: Provenance) -> list[str]:
    """The provenance as comment lines, each beginning with ``# ``."""
    lines = [*_origin(catalog, provenance), *_policy(catalog), *_measured(provenance)]
    dates = ", ".join(f"{model.id} {model.price_date.isoformat()}" for model in catalog.models)
    lines.append(f"prices read: {dates}")
    return comments(lines)


def _origin(catalog: Catalog, provenance: Provenance) -> Iterator[str]:
    number = f"revision {provenance.revision} of {provenance.published_as}"
    number = "not published" if provenance.revision is None else number
    moment = provenance.published_at.astimezone(UTC)
    yield f"catalog: {catalog.name}, {number}"
    yield f"catalog sha256: {catalog.digest}"
    yield f"predictor: {catalog.predictor}, fingerprint {catalog.predictor_fingerprint}"
    done = "exported" if provenance.revision is None else "published"
    yield f"{done}: {moment:%Y-%m-%d %H:%M:%S} UTC by {provenance.author}"
    first, *rest = provenance.note.strip().splitlines() or ["(none)"]
    yield f"note: {first}"
    yield from (f"  {line}" for line in rest)


def _policy(catalog: Catalog) -> Iterator[str]:
    policy = catalog.policy
    tilde = compensated_weights(policy.weights, catalog.bands)
    if policy.rule is Rule.VALUE:
        yield f"rule: value, one more resolved query has the value {policy.value_usd!r} USD"
        yield f"tau of the shortfall rule, not in force: {policy.tau!r}"
    else:
        yield f"tau: {policy.tau!r}"
    yield f"weights w: {_by_dimension(catalog, policy.weights)}"
    yield f"compensated weights w~: {_by_dimension(catalog, tilde)}"
    for one in policy.chosen_on:
        what = "tau (or V)" if one.knob_alone else "policy and profiles"
        yield f"{what} chosen on: {one.evalset}, {one.how}, queries sha256 {one.queries}"
    block = catalog.success_profiles
    if block is not None:
        on = f"{block.evalset}, {counted(block.queries, 'query')}, digest {block.digest}"
        yield f"success profiles: fitted to {on}"
    if block is not None and catalog.outcome_model is not None and catalog.success_source:
        yield f"success predicted from: {catalog.success_source.words}"
    if catalog.outcome_model is not None:
        named = catalog.outcome_model
        yield f"outcome model: {named.path}, sha256 {named.sha256}; its folder lies beside this"
    if policy.cost_basis is CostBasis.REALISED and catalog.realised_costs is not None:
        yield f"cost order: realised cost, measured on {catalog.realised_costs.evalset}"
    elif policy.cost_basis is CostBasis.REALISED:
        yield "cost order: realised cost; the router needs the mean cost per model of the eval set"
    else:
        yield f"cost order: list price, {policy.price_ratio:g} input tokens to 1 output token"


def _measured(provenance: Provenance) -> Iterator[str]:
    if not provenance.evalset:
        yield "not measured: no eval set was chosen"
        return
    kind = " (simulated)" if provenance.synthetic else ""
    yield f"measured on: {provenance.evalset}{kind}, digest {provenance.evalset_digest}"
    if provenance.costs:
        yield f"costs: {provenance.costs}"
    if provenance.baseline:
        yield f"savings: against {provenance.baseline}"
    if provenance.unknown:
        share = f"{100 * provenance.unknown:.1f} % of the traffic"
        yield f"no outcomes: of {share}, which counts as unresolved; quality is at least the value"
    for name, value in provenance.metrics.items():
        yield f"  {name}: {value.value:.6g} [{value.lo:.6g}, {value.hi:.6g}]"


def _by_dimension(catalog: Catalog, values: Iterable[float]) -> str:
    pairs = zip(catalog.dimensions, values, strict=True)
    return ", ".join(f"{name} {float(value):.6g}" for name, value in pairs)


_NAMES = {
    "qr": "quality retention",
    "quality": "mean quality",
    "mean_cost_usd": "mean cost in USD per query",
    "cs": "cost savings",
    "misroute": "overpaid queries",
}
_WORDS = {ChangeKind.ADDED: "Added", ChangeKind.REMOVED: "Removed", ChangeKind.CHANGED: "Changed"}


def measured(found: Replayed, info: EvalSetInfo) -> dict[str, Any]:
    """The metrics of a catalog on an eval set as plain JSON values."""
    values = {
        name: [float(one.value), float(one.lo), float(one.hi)]
        for name in _NAMES
        if all(map(math.isfinite, ((one := getattr(found.metrics, name)).lo, one.hi)))
    }
    return {
        "evalset": info.name,
        "evalset_digest": info.digest,
        "synthetic": info.synthetic,
        "queries": found.metrics.n,
        "tau": found.catalog.policy.tau,
        "baseline": found.metrics.baseline,
        "costs": found.data.costs,
        "unknown": found.metrics.unknown,
        "values": values,
    }


def unknown_text(found: Replayed) -> str:
    """Say what nobody has measured; '' where every model that gets traffic has outcomes."""
    shares = found.metrics.shares
    models = [model for model in found.data.unmeasured if shares.get(model)]
    if not models:
        return ""
    listed = ", ".join(f"{model} {100 * shares[model]:.1f} %" for model in models)
    return (
        f"{100 * found.metrics.unknown:.1f} % of the traffic goes to models without "
        f"outcomes on this set ({listed}). Their queries count as unresolved here."
    )


def value(metrics: Mapping[str, Any], name: str) -> float | None:
    """One value that `measured` kept; None where it did not."""
    values = metrics.get("values")
    found = values.get(name) if isinstance(values, dict) else None
    return float(found[0]) if isinstance(found, list) and len(found) == 3 else None


def provenance(
    revision: Revision | None,
    metrics: Mapping[str, Any],
    *,
    author: str,
    note: str,
    now: datetime,
) -> Provenance:
    """Where a release comes from: a revision, or a draft that was not published."""
    values = metrics.get("values")
    intervals = {
        _NAMES[name]: Interval(*map(float, found))
        for name, found in (values.items() if isinstance(values, dict) else ())
        if name in _NAMES and isinstance(found, list) and len(found) == 3
    }
    return Provenance(
        revision=revision.number if revision else None,
        author=revision.author if revision else author,
        note=revision.note if revision else note,
        published_at=revision.created_at if revision else now,
        published_as=revision.catalog if revision else "",
        evalset=str(metrics.get("evalset", "")),
        evalset_digest=str(metrics.get("evalset_digest", "")),
        synthetic=bool(metrics.get("synthetic", False)),
        costs=str(metrics.get("costs", "")),
        baseline=str(metrics.get("baseline", "")),
        unknown=float(metrics.get("unknown", 0.0)),
        metrics=intervals,
    )


def change_table(changes: tuple[Change, ...]) -> pd.DataFrame:
    """One row per change: what happened, what to, and the values side by side."""
    rows = [
        {
            "what": _WORDS[change.kind],
            "change": change.subject,
            "before": change.before or "",
            "after": change.after or "",
        }
        for change in changes
    ]
    return pd.DataFrame(rows, columns=["what", "change", "before", "after"])


def history_table(history: tuple[Revision, ...]) -> pd.DataFrame:
    """One row per revision, newest first, with what was measured at publish."""
    return pd.DataFrame(
        [
            {
                "revision": one.number,
                "when": one.created_at,
                "who": one.author,
                "note": f"(rolled back to {one.restores}) {one.note}" if one.restores else one.note,
                "qr": None if (qr := value(one.metrics, "qr")) is None else 100 * qr,
                "unknown": 100 * unknown if (unknown := one.metrics.get("unknown")) else None,
                "cost": value(one.metrics, "mean_cost_usd"),
                "evalset": str(one.metrics.get("evalset", "")),
            }
            for one in history
        ],
        columns=["revision", "when", "who", "note", "qr", "unknown", "cost", "evalset"],
    )


def pool_export(catalog: Catalog) -> pd.DataFrame:
    """Every model with everything the table knows, for CSV and JSON."""
    values = capabilities(catalog)
    frame = pd.DataFrame(
        [
            {
                "id": model.id,
                "provider": model.provider,
                "status": model.status.value,
                "input_usd_per_mtok": model.input_usd_per_mtok,
                "output_usd_per_mtok": model.output_usd_per_mtok,
                "cached_input_usd_per_mtok": model.cached_input_usd_per_mtok,
                "blended_usd_per_mtok": blended_price(model, catalog.policy.price_ratio),
                "context_window": model.context_window,
                "vision": model.vision,
                "tools": model.tools,
                "price_date": model.price_date.isoformat(),
                "price_source": model.price_source,
                "retire_on": model.retire_on.isoformat() if model.retire_on else None,
                "long_prompts": "; ".join(map(str, model.long_prompts)) or None,
                "latency_s": model.latency_s,
                "ttft_s": model.ttft_s,
                "variant_of": model.variant_of or None,
                "tags": ", ".join(sorted(model.tags)) or None,
                "lacks": ", ".join(sorted(model.lacks)) or None,
            }
            for model in catalog.models
        ]
    )
    for k, dimension in enumerate(catalog.dimensions):
        frame[f"capability_{dimension}"] = values[:, k]
    for benchmark in catalog.benchmarks:
        frame[f"score_{benchmark.id}"] = [m.scores.get(benchmark.id) for m in catalog.models]
    return frame
