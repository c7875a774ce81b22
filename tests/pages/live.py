"""What the live knob of a page shows, as a test reads it."""

from __future__ import annotations

import json

__all__ = ["knob", "shown"]


def shown(app):
    """Label -> text of every figure at the operating point."""
    return {tile["label"]: tile["value"] for tile in knob(app)["tiles"]}


def knob(app):
    """What the one knob of a page was sent, its steps aside."""
    (found,) = app.get("bidi_component")
    return json.loads(found.proto.mixed.json)
