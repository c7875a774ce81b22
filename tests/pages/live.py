"""What the live knob of a page shows, as a test reads it."""

import json

__all__ = ["knob", "knobs", "shown", "tiles"]


def shown(app):
    """Label -> text of every figure at the operating point."""
    return {tile["label"]: tile["value"] for tile in tiles(app)}


def tiles(app):
    """Every figure at the operating point, with its interval."""
    return [tile for one in knobs(app) for tile in json.loads(one.mixed.json)["tiles"]]


def knob(app):
    """What the one knob of a page was sent, its steps aside."""
    (found,) = knobs(app)
    return json.loads(found.mixed.json)


def knobs(app):
    """Every knob of a page."""
    protos = (one.proto for one in app.get("bidi_component"))
    return [one for one in protos if one.component_name == "hydra_live_knob"]
