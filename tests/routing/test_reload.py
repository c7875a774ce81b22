"""An edited catalog is picked up; a broken edit keeps the last good one and says so."""

import os
from dataclasses import replace as dc_replace
from pathlib import Path

import pytest

from hydra_core.base.errors import MismatchError
from hydra_core.routing.query import Query
from hydra_core.routing.reload import CatalogFile
from hydra_core.routing.router import Router
from tests.routing.conftest import Scores, make_catalog, spec

SHIPPED = Path(__file__).parents[2] / "catalog" / "paper_five_published.yaml"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    copy = tmp_path / "pool.yaml"
    copy.write_bytes(SHIPPED.read_bytes())
    return copy


def replace(path, old, new):
    """Edit as an editor does: write beside, then swap."""
    text = path.read_text()
    assert old in text
    beside = path.with_suffix(".new")
    beside.write_text(text.replace(old, new))
    os.replace(beside, path)


def tau_line(path):
    return next(line for line in path.read_text().splitlines() if line.strip().startswith("tau:"))


def test_an_edit_is_picked_up_and_an_untouched_file_is_not_read_again(path):
    clock = Clock()
    source = CatalogFile(path, clock=clock)
    first = source()
    clock.now = 1.0
    assert source() is first
    replace(path, tau_line(path), "  tau: 0.77")
    assert source() is first  # not looked at again before `every_s` has passed
    clock.now = 2.0
    assert source().policy.tau == 0.77
    assert Router(source).decide([0.1] * 4).tau == 0.77


@pytest.mark.parametrize("broken", ["schema: [", "schema: hydra.catalog/v1\n", ""])
def test_a_broken_edit_keeps_the_last_good_catalog(path, broken):
    clock = Clock()
    source = CatalogFile(path, clock=clock)
    first, text = source(), path.read_text()
    path.write_text(broken)
    clock.now = 1.0
    assert source() is first
    assert "the last good catalog stays in use" in source.problem
    path.write_text(text)
    clock.now = 2.0
    assert source().digest == first.digest
    assert source.problem == ""


def test_a_file_that_is_gone_keeps_the_last_good_catalog(path):
    clock = Clock()
    source = CatalogFile(path, clock=clock)
    first = source()
    path.unlink()
    clock.now = 1.0
    assert source() is first
    assert "cannot be read" in source.problem


def test_a_catalog_of_another_bundle_is_refused(path):
    def refuse(catalog):
        if catalog.policy.tau == 0.77:
            raise MismatchError("bound to another bundle")

    clock = Clock()
    source = CatalogFile(path, check=refuse, clock=clock)
    first = source()
    replace(path, tau_line(path), "  tau: 0.77")
    clock.now = 1.0
    assert source() is first
    assert "another bundle" in source.problem


class TtlSeen:
    """Sessions that keep what they were given."""

    note = ""

    def __init__(self):
        self.put_with = []

    def get(self, key):
        return None

    def put(self, key, model, ttl_s):
        self.put_with.append((model, ttl_s))


def test_a_reload_in_the_middle_of_a_decision_mixes_no_two_revisions():
    old = make_catalog(spec("old", 1, 0.9))
    new = dc_replace(
        make_catalog(spec("new", 1, 0.9), tau=0.5),
        policy=dc_replace(old.policy, tau=0.5, sticky=dc_replace(old.policy.sticky, ttl_s=7.0)),
    )
    source, sessions = [old], TtlSeen()

    class ReloadsWhileScoring(Scores):
        def predict(self, texts, turns=None, contexts=None):
            if source[0] is old:  # another request brings the new revision in meanwhile
                source[0] = new
                router.decide([0.1] * 4)
            return super().predict(texts, turns)

    router = Router(lambda: source[0], ReloadsWhileScoring(), sessions=sessions)
    decision = router.route(Query("hello", conversation_id="c"))
    assert (decision.model, decision.tau) == ("old", old.policy.tau)
    assert sessions.put_with == [("old", old.policy.sticky.ttl_s)]
    assert router.route(Query("hello", conversation_id="c")).model == "new"
    assert sessions.put_with[-1] == ("new", 7.0)
