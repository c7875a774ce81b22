"""What the last release promised to keep is still there."""

import json

from docs.write_stable import FILE, promise
from hydra_core.base.shipped import VERSION

RELEASED = json.loads(FILE.read_text(encoding="utf-8"))


def missing(promised, now):
    """Places of what was promised and is gone; lists may grow, but not lose."""
    if isinstance(promised, dict):
        for name, value in promised.items():
            if name not in now:
                yield name
            else:
                yield from (f"{name}: {place}" for place in missing(value, now[name]))
    else:
        yield from (str(one) for one in promised if one not in now)


def test_nothing_that_the_last_release_promised_is_gone():
    released = {kind: value for kind, value in RELEASED.items() if kind != "version"}
    assert list(missing(released, promise())) == []


def test_a_missing_option_or_parameter_is_noticed():
    now = promise()
    now["verbs"]["route"].remove("--catalog")
    del now["python"]["hydra_core.routing.router"]["Router"]
    assert list(missing({**RELEASED, "version": ""}, now)) == [
        "python: hydra_core.routing.router: Router",
        "verbs: route: --catalog",
    ]


def test_a_major_version_alone_may_break_the_promise():
    assert RELEASED["version"].split(".")[0] == VERSION.split(".")[0]
