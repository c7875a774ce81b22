"""The frontier of a report as SVG: no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["frontier_svg"]

#: Keeps a label readable where lines pass behind it.
_HALO = 'stroke="#fff" stroke-width="3" paint-order="stroke"'
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 860, 420, 62, 48, 16, 24


def frontier_svg(report: Mapping[str, Any]) -> str:
    """Quality over cost: the frontier, the constants with their hull, the oracle, the router."""
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
        f"{'V' if report['rule'] == 'value' else 'tau'}. Dashed: what random mixtures of "
        "constants reach.</figcaption></figure>"
    )


class _Axes:
    """Linear axes that hold all points, cost to the right and quality upwards."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        costs, qualities = zip(*points, strict=True)
        pad = 0.05 * ((max(qualities) - min(qualities)) or 0.1)
        self._cost = (0.0, 1.08 * max(costs) or 1.0)
        self._quality = (min(qualities) - pad, max(qualities) + pad)

    def at(self, cost: float, quality: float) -> tuple[float, float]:
        """Pixel position of a point."""
        x = (cost - self._cost[0]) / (self._cost[1] - self._cost[0])
        y = (quality - self._quality[0]) / (self._quality[1] - self._quality[0])
        return (
            _LEFT + x * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - y * (_HEIGHT - _BOTTOM - _TOP),
        )

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """The points of a polyline."""
        return " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)

    def mark(
        self, point: tuple[float, float], colour: str, name: str, *, below: bool = False
    ) -> str:
        """A dot with its name, on the side where there is room."""
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
        """Axis lines, five ticks each, and their names."""
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
