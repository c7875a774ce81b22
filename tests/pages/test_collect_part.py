"""Eval sets, part Collect: how a run is begun, and how far the runs are."""

import json

from hydra_core.console import cache
from hydra_core.console.access import identity
from hydra_core.console.eval_sets.collect import runs_table
from hydra_core.lab.collect.people import Blind
from hydra_core.lab.collect.plan import LEDGER, SETUP, SUFFIX, RunStatus, status_of
from hydra_core.lab.labeling.ledger import Call, Ledger

PAGE = "pages/configure/eval_sets.py?part=collect"


def test_without_a_run_it_says_what_it_is_for_and_how_to_begin(open_page):
    app = open_page(PAGE)
    assert not app.exception
    said = " ".join(one.value for one in app.markdown)
    assert "Have every model answer the same messages" in said
    assert "estimates the cost without calling a model" in said


def test_a_run_is_shown_with_what_it_has_and_what_it_cost(open_page, workspace):
    folder = workspace / "evalsets" / f"mine{SUFFIX}"
    folder.mkdir(parents=True)
    setup = {"models": ["a", "b"], "cells": 4, "set": "x", "budget_usd": 2.0}
    (folder / SETUP).write_text(json.dumps(setup))
    with Ledger(folder / LEDGER, "recipe") as ledger:
        for i, model in enumerate(("a", "b", "a")):
            call = Call(f"{model}|q{i}", "answer", model)
            ledger.add("asked", call, most_usd=0.5, digest="d")
            ledger.add("answered", call, cost_usd=0.25, tokens=[1, 2], content="yes")
        ledger.add("aside", Call("b|q9", "answer", "b"), reason="was lost")
    app = open_page(PAGE)
    assert not app.exception
    (row,) = app.dataframe[0].value.to_dict("records")
    assert (row["run"], row["state"], row["done"]) == ("mine", "complete", 75.0)
    assert (row["answers"], row["aside"], row["spent"]) == ("3 of 4", 1, "$0.75 of $2")


def test_a_run_is_complete_where_nothing_is_still_to_come(workspace):
    folder = workspace / "evalsets" / f"mine{SUFFIX}"
    folder.mkdir(parents=True)
    planned = {f"a|q{i}": 2 for i in range(4)}
    setup = {"models": ["a"], "cells": 4, "planned": planned, "set": "x", "budget_usd": 2.0}
    (folder / SETUP).write_text(json.dumps(setup))
    states = []
    with Ledger(folder / LEDGER, "recipe") as ledger:
        for i in range(4):
            call = Call(f"a|q{i}", "answer", "a")
            ledger.add("answered", call, cost_usd=0.25, tokens=[1, 2], content="yes")
            if i == 1:  # answered, and set aside because nobody could grade it
                for j in range(2):
                    ledger.add("aside", Call(f"a|q{j}", "judge", "a"), reason="no grade")
            states.append(status_of(folder).complete)
        for i in (2, 3):
            call = Call(f"a|q{i}", "judge", "a")
            ledger.add("answered", call, cost_usd=0.25, tokens=[1, 2], content="1")
            states.append(status_of(folder).complete)
    assert states == [False] * 5 + [True]
    (folder / SETUP).write_text(json.dumps(setup | {"planned": planned | {"a|q3": 3}}))
    assert not status_of(folder).complete
    fewer = {"cells": 2, "planned": {"a|q2": 2, "a|q3": 2}}  # begun again with --sample
    (folder / SETUP).write_text(json.dumps(setup | fewer))
    found = status_of(folder)
    assert (found.answered, found.cells, found.aside, found.complete) == (2, 2, 0, True)


def test_people_grade_answers_blind_and_one_after_another(open_page, workspace):
    folder = workspace / "evalsets" / f"mine{SUFFIX}"
    folder.mkdir(parents=True)
    setup = {"models": ["a", "b"], "cells": 2, "set": "x", "budget_usd": 2.0}
    (folder / SETUP).write_text(json.dumps(setup))
    Ledger(folder / LEDGER, "recipe").__exit__(None, None, None)
    form = [Blind(f"a{i}", "Name a city", "Paris", f"It is number {i}") for i in range(2)]
    lines = (json.dumps({name: getattr(one, name) for name in Blind.__slots__}) for one in form)
    (folder / "form-1.jsonl").write_text("\n".join(lines) + "\n")
    app = open_page(PAGE)
    assert not app.exception
    next(one for one in app.button if one.label == "Start grading").click().run()
    assert not app.exception
    assert "Name a city" in app.get("html")[0].proto.body
    assert [one.label for one in app.segmented_control if one.key.startswith("audit.")] == [
        "Quality"
    ]
    (sample,) = cache.store().ratings.samples()
    assert (sample.evalset, sample.dimensions) == (folder.name, ("quality",))
    for one in form:
        cache.store().ratings.rate(sample, one.id, [4], actor=identity.actor())
    app.run()
    assert app.success[0].value == "You have rated every answer of this sample."


def test_a_damaged_run_is_named_and_hides_no_other(open_page, workspace):
    folder = workspace / "evalsets" / f"torn{SUFFIX}"
    folder.mkdir(parents=True)
    (folder / LEDGER).write_text("")
    app = open_page(PAGE)
    assert not app.exception
    assert "torn" in app.warning[0].value


def test_a_little_that_was_spent_is_no_zero():
    one = RunStatus("mine", ("a",), 4, 1, 0, 0.0004, 2_000_000.0, running=False, complete=False)
    assert runs_table([one])["spent"].tolist() == ["$0.000400 of $2,000,000"]
