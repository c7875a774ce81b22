"""Robustness from app.py: what it says is what the attack found."""

import time
from dataclasses import replace

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog.schema import load_catalog
from hydra_core.console import cache, replays
from hydra_core.console.inspect.robustness import Wanted, routed
from hydra_core.lab.robustness.findings import probed

PAGE = "pages/operate/inspect.py?part=robustness"
SHORTFALL = {"set": "console_demo", "catalog": "paper_five"}


def attack(app, typed):
    """Paste messages, press Attack, and wait for the result."""
    source = next(one for one in app.get("button_group") if one.proto.label == "Messages")
    source.set_value("Pasted").run()
    app.text_area(key="robustness.pasted").set_value(typed).run()
    app.button(key="robustness.start").click().run()
    tasks = replays.tasks()._tasks
    began = time.monotonic()
    while any(task.running for task in tasks.values()) and time.monotonic() - began < 60:
        time.sleep(0.05)
    return app.run()


def test_pasted_messages_are_attacked(open_page):
    app = open_page(PAGE)
    assert not app.exception
    app = attack(app, "Please sort this list.\nBitte sortiere diese Liste.\n")
    assert not app.exception
    shown = {one.label: one.value for one in app.metric}
    assert set(shown) == {"Own language", "In English", "Cost ratio", "Harmless change", "Attacked"}
    # which of them the catalog sends to a dear model anyway hangs on the last digits of a score
    assert {one.label: one.delta for one in app.metric}["Attacked"] == "of 2 messages"
    assert shown["Attacked"] in {"0", "1", "2"}
    (task,) = replays.tasks()._tasks.values()
    assert task.result.languages == ("en", "de")
    assert len(task.result.attacks) == 16


def test_nothing_pasted_cannot_be_attacked(open_page):
    app = open_page(PAGE)
    source = next(one for one in app.get("button_group") if one.proto.label == "Messages")
    source.set_value("Pasted").run()
    assert app.button(key="robustness.start").disabled


def test_a_suffix_too_long_is_refused_with_its_length(open_page):
    app = open_page(PAGE)
    app.text_area(key="robustness.own").set_value("x" * 2_500).run()
    assert "2,500 characters" in app.error[0].value.replace("\\", "")


def test_the_address_names_tau_and_restores_it(open_page):
    link = {"set": "console_demo", "catalog": "paper_five", "view": "Languages", "tau": "0.125"}
    app = attack(open_page(PAGE, **link), "Please sort this list.\n")
    assert app.slider(key="robustness.tau").value == 0.125
    app.slider(key="robustness.tau").set_value(0.2).run()
    assert {k: "".join(v) for k, v in app.query_params.items()} == {
        **link,
        "part": "robustness",
        "tau": "0.2",
    }


def test_a_tau_above_the_usual_end_of_the_knob_is_kept(open_page):
    app = attack(open_page(PAGE, **SHORTFALL, tau="99", view="rubbish"), "Please sort this list.\n")
    assert not app.exception
    assert app.slider(key="robustness.tau").value == 99.0


def test_another_catalog_brings_its_own_tau(open_page):
    app = open_page(PAGE, set="console_demo", catalog="paper_five", tau="0.125")
    other = next(one for one in app.selectbox(key="data.catalog").options if one != "paper_five")
    app.selectbox(key="data.catalog").set_value(other.split(" ")[0]).run()
    assert "tau" not in app.query_params


def test_other_weights_route_the_attacked_messages_anew(workspace):
    wanted = Wanted(None, ("Please sort this list.",), 1, {"mine": {"en": "It is hard."}})
    families = {"mine": wanted.own["mine"]}
    found = probed(cache.predictor(), list(wanted.pasted), ["en"], None, families)
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    weights = (4.0, *catalog.policy.weights[1:])
    other = replace(catalog, policy=replace(catalog.policy, weights=weights))
    first, second, again = (routed(wanted, found, one) for one in (catalog, other, catalog))
    assert first.pool.weights.tolist() != second.pool.weights.tolist()
    assert again is first
