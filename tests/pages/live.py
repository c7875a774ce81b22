"""What the live knob of a page shows, as a test reads it."""

from __future__ import annotations

import json

__all__ = ["shown"]


def shown(app):
    """Label -> text of every figure at the operating point."""
    (knob,) = app.get("bidi_component")
    data = json.loads(knob.proto.mixed.json)
    return {tile["label"]: tile["value"] for tile in data["tiles"]}
