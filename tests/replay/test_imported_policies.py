"""Another router's decisions: every query has one model of the set, or nothing is kept."""

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import EvalSetError, MismatchError
from hydra_core.base.types import Pool
from hydra_core.replay.imported_policies import (
    imported_policies,
    load_policy,
    policy_choice,
    policy_names,
    read_policy,
    save_policy,
)
from hydra_core.replay.replay import align
from tests.evalsets.sets import saved


@pytest.fixture
def small(tmp_path):
    return saved(tmp_path / "set")


def table(tmp_path, text, name="theirs.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_policy_is_kept_and_read_in_the_sets_order(small, tmp_path):
    file = table(tmp_path, "id,llm\nc,cheap\na,strong\nb,cheap\nz,unknown\n")
    save_policy(small, "litellm", read_policy(file, small))
    assert policy_names(small.path) == ("litellm",)
    assert load_policy(small, "litellm") == ("strong", "cheap", "cheap")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query_id,model\na,cheap\nb,cheap\n", "1 of 3 queries have no row: c"),
        ("query_id,model\na,cheap\na,cheap\nb,cheap\nc,cheap\n", "second row: a"),
        ("query_id,model\na,cheap\nb,gpt\nc,cheap\n", "'gpt' is not a model"),
        ("query_id,choice\na,cheap\n", "the column is missing"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(small, tmp_path, text, message):
    with pytest.raises(EvalSetError, match=message):
        read_policy(table(tmp_path, text), small)
    assert policy_names(small.path) == ()


def test_a_taken_name_is_kept_unless_told(small):
    save_policy(small, "p", pd.Series(["cheap"] * 3))
    with pytest.raises(EvalSetError, match="already"):
        save_policy(small, "p", pd.Series(["strong"] * 3))
    assert load_policy(small, "p") == ("cheap",) * 3
    save_policy(small, "p", pd.Series(["strong"] * 3), force=True)
    assert load_policy(small, "p") == ("strong",) * 3


@pytest.mark.parametrize("name", ["../out", "a/b", "", "рaper"])
def test_a_name_that_is_no_plain_name_is_refused(small, name):
    with pytest.raises(EvalSetError, match="name"):
        save_policy(small, name, pd.Series(["cheap"] * 3))


def test_a_policy_is_replayed_on_the_pool(small):
    pool = Pool(("strong", "cheap"), np.ones((2, 1)), np.array([2.0, 1.0]), np.ones(1))
    data = align(small, np.zeros((3, 1)), pool)
    assert policy_choice(data, ("cheap", "strong", "cheap")).tolist() == [1, 0]
    cheap = Pool(("cheap",), np.ones((1, 1)), np.ones(1), np.ones(1))
    alone = align(small, np.zeros((3, 1)), cheap)
    with pytest.raises(MismatchError, match="strong"):
        policy_choice(alone, ("strong",) * 3)


def test_every_policy_is_replayed_and_one_outside_the_pool_says_why(small):
    save_policy(small, "theirs", pd.Series(["cheap", "strong", "cheap"]))
    save_policy(small, "frugal", pd.Series(["cheap"] * 3))
    pool = Pool(("strong", "cheap"), np.ones((2, 1)), np.array([2.0, 1.0]), np.ones(1))
    found = imported_policies(small, align(small, np.zeros((3, 1)), pool))
    assert found.metrics["theirs"].quality.value == 1.0  # a by cheap, b by strong; c is left out
    assert found.metrics["theirs"].mean_cost_usd.value == pytest.approx((0.01 + 0.3) / 2)
    assert found.metrics["frugal"].quality.value == 0.5
    cheap = Pool(("cheap",), np.ones((1, 1)), np.ones(1), np.ones(1))
    alone = imported_policies(small, align(small, np.zeros((3, 1)), cheap))
    assert set(alone.metrics) == {"frugal"}
    assert "theirs" in alone.notes[0]
    assert "strong" in alone.notes[0]


def test_a_damaged_policy_is_named_and_hides_no_other(small):
    save_policy(small, "theirs", pd.Series(["cheap"] * 3))
    (small.path / "policies" / "broken.parquet").write_bytes(b"no table")
    pool = Pool(("cheap",), np.ones((1, 1)), np.ones(1), np.ones(1))
    found = imported_policies(small, align(small, np.zeros((3, 1)), pool))
    assert set(found.metrics) == {"theirs"}
    assert "broken" in found.notes[0]
