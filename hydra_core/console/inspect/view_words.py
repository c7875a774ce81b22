"""A message as escaped HTML, and which of its words moved a requirement. No streamlit."""

from __future__ import annotations

import html
from typing import Final

import numpy as np

from hydra_core.console.figures.theme import Palette, tint
from hydra_core.lab.robustness.occlusion import Occlusion
from hydra_core.predictor.tokens import Gap

#: Effects below this are not coloured: leaving out any word moves a score a little.
TOLD_FROM: Final = 0.004
_STRONGEST_ALPHA = 0.62
_AFTER = 240
#: Characters without a shape of their own that words are written with: joiners, new lines, tabs.
_WRITTEN = "\n\t\u200c\u200d"


def valid(text: str) -> str:
    """The text without lone surrogates, which cannot be sent to a browser."""
    return text.encode("utf-8", "replace").decode("utf-8")


def escaped(text: str) -> str:
    """Escaped, and without characters that browsers do not show or that turn the text around."""
    shown = "".join(c if c.isprintable() or c in _WRITTEN else "\ufffd" for c in valid(text))
    return html.escape(shown)


def block(inner: str, *, line_height: float = 1.5) -> str:
    """Lines of escaped text and our markup as they stand, from right to left where so written."""
    style = f"white-space:pre-wrap;overflow-wrap:anywhere;line-height:{line_height}"
    return f'<div dir="auto" style="{style}">{inner}</div>'


def highlighted(
    text: str, found: Occlusion, dimension: int, colors: Palette, gap: Gap | None = None
) -> str:
    """The beginning of the message with its words coloured by their effect on one requirement.

    Everything from the message is escaped; only our own spans, and the mark of the gap, are markup.
    """
    effects = found.effect[:, dimension] if len(found.effect) else np.zeros(0)
    strongest_effect = max(float(np.abs(effects).max(initial=0.0)), TOLD_FROM)
    end = min(len(text), found.looked_at + _AFTER)
    pieces, at = [], 0
    for (start, stop), effect in zip(found.spans, effects, strict=True):
        pieces.append(_plain(text, at, start, gap))
        word = _plain(text, start, stop, gap)
        share = abs(effect) / strongest_effect
        pieces.append(_span(word, float(effect), share, colors))
        at = stop
    pieces.append(_plain(text, at, end, gap))
    more = f"<i> … and {len(text) - end:,} more characters</i>" if end < len(text) else ""
    return block(f"{''.join(pieces)}{more}", line_height=1.9)


def strongest(text: str, found: Occlusion, dimension: int) -> list[str]:
    """The three words that raised the requirement most, the strongest first."""
    effects = found.effect[:, dimension] if len(found.effect) else np.zeros(0)
    order = np.argsort(-effects, kind="stable")[:3]
    return [text[slice(*found.spans[i])] for i in order if effects[i] >= TOLD_FROM]


def _span(word: str, effect: float, share: float, colors: Palette) -> str:
    if abs(effect) < TOLD_FROM:
        return word
    shade = tint(
        colors.accent if effect > 0 else colors.warn,
        round(0.08 + (_STRONGEST_ALPHA - 0.08) * share, 2),
    )
    return (
        f'<span title="{effect:+.3f}" style="background:{shade};'
        f'border-radius:4px;padding:1px 2px">{word}</span>'
    )


def _plain(text: str, start: int, stop: int, gap: Gap | None) -> str:
    if gap is not None and start <= gap.start < stop:
        cut = f'<b title="the predictor did not read {gap.end - gap.start:,} characters"> ✂ </b>'
        return escaped(text[start : gap.start]) + cut + escaped(text[gap.start : stop])
    return escaped(text[start:stop])
