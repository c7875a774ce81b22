"""The report: an evaluation as one HTML file that needs no network, holds no script and prints.

Every text that came from outside is escaped; figures are drawn as SVG.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from hydra_core.base.spelling import counted, signed
from hydra_core.base.types import Rule
from hydra_core.replay.evaluation import KNOBS, STATED, Evaluation, evaluation_document
from hydra_core.replay.pricing import RECORDED_COSTS
from hydra_core.replay.significance_table import (
    HEAD,
    common_table,
    p_text,
    significance_document,
)

#: Keeps a label readable where lines pass behind it.
_HALO = 'stroke="#fff" stroke-width="3" paint-order="stroke"'
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 860, 420, 62, 48, 16, 24


def frontier_svg(report: Mapping[str, Any]) -> str:
    """Quality over cost: the frontier, single models with their hull, the oracle, the router."""
    curve, models = report["frontier"], report["models"]
    points = [(cost, quality) for _, quality, cost in curve]
    singles = [(m["mean_cost_usd"], m["quality"]) for m in models.values()]
    oracle, router = (
        (report[key]["mean_cost_usd"], report[key]["quality"]) for key in ("oracle", "router")
    )
    place = _Axes([*points, *singles, oracle, router])
    hull = sorted((m["mean_cost_usd"], m["quality"]) for m in models.values() if m["on_hull"])
    body = [
        place.frame(),
        f'<polyline points="{place.path(hull)}" fill="none" stroke="#8a94a3" '
        'stroke-dasharray="5 4"/>',
        f'<polyline points="{place.path(sorted(points))}" fill="none" stroke="#2f6fb3" '
        'stroke-width="2"/>',
        *(place.mark(at, "#5a6675", name) for at, name in zip(singles, models, strict=True)),
        place.mark(oracle, "#1a7f4b", "oracle"),
        place.mark(router, "#c2410c", "router", below=True),
    ]
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Quality over cost '
        f'per query">{"".join(body)}</svg><figcaption class="small">Solid: every '
        f"{'V' if report['rule'] == 'value' else 'tau'}. Dashed: what fixed "
        "mixes of models reach.</figcaption></figure>"
    )


class _Axes:
    """Linear axes that hold all points, cost to the right and quality upwards."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        costs, qualities = zip(*points, strict=True)
        pad = 0.05 * ((max(qualities) - min(qualities)) or 0.1)
        self._cost = (0.0, 1.08 * max(costs) or 1.0)
        self._quality = (min(qualities) - pad, max(qualities) + pad)

    def at(self, cost: float, quality: float) -> tuple[float, float]:
        x = (cost - self._cost[0]) / (self._cost[1] - self._cost[0])
        y = (quality - self._quality[0]) / (self._quality[1] - self._quality[0])
        return (
            _LEFT + x * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - y * (_HEIGHT - _BOTTOM - _TOP),
        )

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)

    def mark(
        self, point: tuple[float, float], colour: str, name: str, *, below: bool = False
    ) -> str:
        x, y = self.at(*point)
        left = x > 0.75 * _WIDTH
        anchor, dx = ("end", -8) if left else ("start", 8)
        dy = 16 if below else -7
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
            f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" font-size="12" fill="{colour}" '
            f'{_HALO} text-anchor="{anchor}">{escape(name)}</text>'
        )

    def frame(self) -> str:
        x0, y0 = self.at(self._cost[0], self._quality[0])
        x1, y1 = self.at(self._cost[1], self._quality[1])
        parts = [f'<path d="M{x0},{y1} V{y0} H{x1}" fill="none" stroke="#5a6675"/>']
        for i in range(5):
            cost = self._cost[0] + i / 4 * (self._cost[1] - self._cost[0])
            quality = self._quality[0] + i / 4 * (self._quality[1] - self._quality[0])
            x, y = self.at(cost, quality)
            parts.append(
                f'<text x="{x:.1f}" y="{y0 + 17:.1f}" font-size="11" text-anchor="middle" '
                f'fill="#5a6675">{cost:.3g}</text>'
                f'<text x="{x0 - 7:.1f}" y="{y + 4:.1f}" font-size="11" text-anchor="end" '
                f'fill="#5a6675">{100 * quality:.0f} %</text>'
            )
        label = 'font-size="12" text-anchor="middle" fill="#1c2430"'
        middle = (x0 + x1) / 2
        parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 8}" {label}>USD per query</text>')
        return "".join(parts)


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { padding: .3rem .5rem; border-bottom: 1px solid #d5dae1; text-align: right }
th:first-child, td:first-child { text-align: left }
th { font-weight: 600 } caption { text-align: left; color: #5a6675; padding: .3rem 0 }
.verdict { border-left: .3rem solid #6b7685; padding: .6rem 1rem; background: #f3f5f8 }
.better { border-color: #1a7f4b } .worse { border-color: #b3372f }
.flag { background: #fff3d6; padding: .4rem 1rem; border-left: .3rem solid #b98500 }
.small { color: #5a6675; font-size: .85rem } code { word-break: break-all }
svg { width: 100%; height: auto } figure { margin: 1rem 0 }
@media print { body { margin: 0; max-width: none } h2, figure, table { break-inside: avoid } }
"""
#: Rows of the frontier: more cannot be told apart on the page.
_DRAWN = 400


def report_document(found: Evaluation, *, made: datetime, tuned_on: str = "") -> dict[str, Any]:
    """The document that a report draws: with its table, and what can be seen of the frontier."""
    table = common_table(
        found.sweep, [found.knob], strong=found.baseline, fixed=found.verdict.origin == STATED
    )
    content = evaluation_document(found, made=made, tuned_on=tuned_on, rows=_DRAWN)
    return {**content, "significance": significance_document(table)}


def evaluation_html(report: Mapping[str, Any]) -> str:
    """A whole HTML page from a document `hydra.evaluation/v1`."""
    about, policy = report["fingerprints"], report["policy"]
    title = f"{about['evalset']}: {about['catalog']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="small">{report["n"]:,} queries, {_setting(report)}, made '
        f"{escape(report['made'])}</p>",
        *_flags(report),
        _verdict(report["verdict"]),
        "<h2>Frontier</h2>",
        frontier_svg(report),
        "<h2>Policies</h2>",
        _policies(report),
        *_significance(report.get("significance")),
        *_conversations(report),
        "<h2>What was tuned on what</h2>",
        _tuned(report),
        *_languages(report),
        "<h2>Fingerprints</h2>",
        _fingerprints({**about, "costs": report["costs"]}, policy, report["notes"]),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _knob(report: Mapping[str, Any]) -> tuple[str, str, str]:
    """What the knob is called, and the keys of one setting and of several."""
    rule = Rule(report["rule"])
    return ("V" if rule is Rule.VALUE else "tau", *KNOBS[rule])


def _setting(report: Mapping[str, Any]) -> str:
    name, key, _ = _knob(report)
    worth = ": what one more resolved query is worth, USD" if name == "V" else ""
    return f"{name} {report['policy'][key]:.4g}{worth}"


def _flags(report: Mapping[str, Any]) -> list[str]:
    about, flags = report["fingerprints"], []
    if about["synthetic"]:
        flags.append("Synthetic: these outcomes were simulated, not measured.")
    if about["cost_estimated"]:
        flags.append(f"Costs were estimated from prices, not billed. {about['price_notes']}")
    if report["recorded_costs"]:
        flags.append(f"{RECORDED_COSTS}: {', '.join(report['recorded_costs'])}.")
    return [f'<p class="flag">{escape(text)}</p>' for text in flags]


def _verdict(verdict: Mapping[str, Any]) -> str:
    tone = verdict["label"] if verdict["label"] in ("better", "worse") else "same"
    least = verdict["detectable_difference"]
    hint = (
        f"A difference of {100 * least:.1f} pp would show on this set with 80 % probability."
        if least is not None and math.isfinite(least)
        else ""
    )
    details = [*verdict["details"], *filter(None, [verdict["caution"], hint])]
    listed = "".join(f"<li>{escape(one)}</li>" for one in details)
    return (
        f'<div class="verdict {tone}"><strong>{escape(verdict["title"])}.</strong> '
        f'{escape(verdict["text"])}<ul class="small">{listed}</ul></div>'
    )


def _percent(value: float) -> str:
    return f"{100 * value:.1f}" if math.isfinite(value) else "–"


def _range(found: Mapping[str, Any], name: str, scale: float = 100.0, digits: int = 1) -> str:
    """An estimate with its interval where it has one; a dash where it is not defined.

    Quality that models without outcomes leave open is at least what is shown.
    """
    centre, *ends = (
        f"{scale * part:.{digits}f}" if part is not None and math.isfinite(part) else "–"
        for part in (found[name], *found["ci"][name])
    )
    least = "≥ " if name in ("quality", "qr") and found.get("unknown") else ""
    return f"{least}{centre}" if "–" in ends else f"{least}{centre} [{', '.join(ends)}]"


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _dollars(found: Mapping[str, Any], key: str) -> str:
    if found[key] is None or not math.isfinite(found[key]):
        return "–"
    low, high = found["ci"][key]
    ends = f" ({low:.4g} to {high:.4g})" if low is not None and math.isfinite(low) else ""
    return f"{'≤ ' if found.get('unknown') else ''}{found[key]:.4g}{ends}"


def _policies(report: Mapping[str, Any]) -> str:
    head = ["", "quality, %", "QR, %", "CS, %", "misroute, %", "USD per query",
            "USD per resolved query"]  # fmt: skip
    names = ("quality", "qr", "cs", "misroute")
    rows = [
        [
            name,
            *(_range(found, key) for key in names),
            f"{found['mean_cost_usd']:.4g}",
            _dollars(found, "per_resolved_usd"),
        ]
        for name, found in (("router", report["router"]), ("oracle", report["oracle"]))
    ]
    first = _table("With 95 % intervals; savings against " + report["baseline"], head, rows)
    best = report["oracle"]["quality"] or math.nan
    singles = [
        [
            model + (" (hull)" if one["on_hull"] else ""),
            _percent(one["quality"]),
            _percent(one["quality"] / best),
            f"{one['mean_cost_usd']:.4g}",
            _percent(one["share"]),
        ]
        for model, one in report["models"].items()
    ]
    head = ["always", "quality, %", "QR, %", "USD per query", "share under the router, %"]
    return first + _table("Single models", head, singles)


def _significance(table: Mapping[str, Any] | None) -> list[str]:
    if table is None:
        return []
    return [
        "<h2>Significance</h2>",
        _table(
            f"On {counted(table['n'], 'query')}; p against {table['strong']}", HEAD, table["cells"]
        ),
        _table(
            "Row minus column in points of quality; * where the corrected p is below 0.05",
            ["", *table["names"]],
            [[name, *cells] for name, cells in zip(table["names"], table["matrix"], strict=True)],
        ),
        f'<p class="small">{escape(" ".join(table["methods"]))}</p>',
    ]


def _conversations(report: Mapping[str, Any]) -> list[str]:
    played = report["conversations"]
    if played is None:
        return [f'<p class="small">{escape(report["per_query"])}</p>']
    head = ["sticky mode", "quality, %", "USD per turn", "CS, %", "cache reads, %", "switches",
            "lost to switches, USD"]  # fmt: skip
    rows = [
        [
            mode.replace("_", " "),
            _range(one, "quality"),
            f"{one['usd_per_turn']:.4g}",
            _range(one, "cs"),
            _percent(one["cached_share"]),
            f"{one['switches']:.2f}",
            f"{one['lost_usd']:.4g}",
        ]
        for mode, one in played["modes"].items()
    ]
    caption = (
        f"{counted(played['turns'], 'turn')} of "
        f"{counted(played['conversations'], 'conversation')}, cache reads counted; "
        f"savings against {played['strong']}; switches and losses per conversation"
    )
    if played["without_price"]:
        caption += f"; no cached price is known of {', '.join(played['without_price'])}"
    return ["<h2>Conversations</h2>", _table(caption, head, rows)]


def _tuned(report: Mapping[str, Any]) -> str:
    text = f"<p>Settings chosen on: {escape(report['policy']['tuned_on'])}.</p>"
    cross = report["cross_fit"]
    if cross is None:
        return text + "<p>The set is too small to tune on one half and measure on the other.</p>"
    name, _, several = _knob(report)
    chosen = ", ".join(f"{one:.4g}" for one in cross[several])
    return (
        f"{text}<p>Aiming at the same quality on one half and measuring on the other ({name} "
        f"{chosen}): quality {_range(cross, 'quality')} %, QR {_range(cross, 'qr')} %, CS "
        f"{_range(cross, 'cs')} %. The halves promised {_percent(cross['in_sample_quality'])} % "
        f"where they were tuned: promised less kept {signed(100 * cross['optimism'])} pp. "
        f"{escape(cross['verdict_text'])}</p>"
    )


def _languages(report: Mapping[str, Any]) -> list[str]:
    if len(report["languages"]) < 2:
        return []
    head = ["", "n", "QR, %", "CS, %", "to the strong model, %", "QR minus the others', pp", "p"]
    parts = ["<h2>Languages</h2>"]
    for caption, key in (("By language", "languages"), ("By group", "groups")):
        rows = [
            [
                one["name"] + (" (few)" if one["small"] else ""),
                str(one["n"]),
                *(_range(one, name) for name in ("qr", "cs", "strong", "difference")),
                p_text(one["p_value"]),
            ]
            for one in report[key]
        ]
        parts.append(_table(f"{caption}; p is Holm-corrected", head, rows))
    return parts


def _fingerprints(about: Mapping[str, Any], policy: Mapping[str, Any], notes: Sequence[str]) -> str:
    weights = ", ".join(f"{name} {value:g}" for name, value in policy["weights"].items())
    rows = [[key.replace("_", " "), str(value)] for key, value in about.items() if value != ""]
    rows += [["weights", weights], ["cost basis", policy["cost_basis"]]]
    rows += [["note", note] for note in notes]
    body = "".join(
        f"<tr><td>{escape(key)}</td><td><code>{escape(value)}</code></td></tr>"
        for key, value in rows
    )
    return f"<table><tbody>{body}</tbody></table>"
