"""Eval sets: what is saved is loaded, what is not valid is refused whole, nothing half is left."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.folders import list_evalsets, parse_manifest, read_arrow, replace_folder
from tests.evalsets.sets import COST_USD, QUALITY, queries, saved


def rewrite_part(folder, part, frame):
    """Change a part and make the manifest agree, so that only the rules can object."""
    before = file_sha256(folder / part)
    frame.to_parquet(folder / part, index=False)
    text = (folder / "evalset.yaml").read_text()
    (folder / "evalset.yaml").write_text(text.replace(before, file_sha256(folder / part)))


def test_what_is_saved_is_loaded(tmp_path):
    saved(tmp_path / "set", origin="a test: yes", licence="CC0", synthetic=True)
    found = load_evalset(tmp_path / "set")
    assert (found.name, found.origin, found.synthetic) == ("small", "a test: yes", True)
    assert found.query_ids == ("a", "b", "c")
    assert list(found.queries["text"]) == list(queries()["text"])
    np.testing.assert_array_equal(found.quality, QUALITY)
    np.testing.assert_array_equal(found.cost_usd, COST_USD)


def test_missing_outcomes_stay_missing_and_are_counted(tmp_path):
    found = saved(tmp_path / "set")
    assert found.missing_quality == {"cheap": 0, "strong": 1}
    assert found.missing_cost == {"cheap": 1, "strong": 1}
    assert found.resolved == {"cheap": 2, "strong": 2}


def test_arrays_cannot_be_changed(tmp_path):
    with pytest.raises(ValueError, match="read-only"):
        saved(tmp_path / "set").quality[0, 0] = 0.0


def test_extra_outcomes_come_back(tmp_path):
    tokens = np.array([[10.0, 20.0], [30.0, 40.0], [50.0, np.nan]])
    found = saved(tmp_path / "set", extras={"tokens": tokens})
    np.testing.assert_array_equal(found.extras["tokens"], tokens)


def test_equal_content_has_an_equal_digest_and_other_content_another(tmp_path):
    one, same = saved(tmp_path / "one"), saved(tmp_path / "same")
    other = saved(tmp_path / "other", quality=np.zeros((3, 2)))
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize("part", ["queries.parquet", "outcomes.parquet"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_part_is_named(tmp_path, part, damage):
    saved(tmp_path / "set")
    file = tmp_path / "set" / part
    content = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(content[:-9] if damage == "cut" else content[:-1] + b"x")
    with pytest.raises(EvalSetError, match=part):
        load_evalset(tmp_path / "set")


def test_every_broken_rule_is_reported_at_once(tmp_path):
    saved(tmp_path / "set")
    rows = pd.DataFrame(
        {
            "query_id": ["a", "a", "z"],
            "model": ["cheap", "cheap", "unknown"],
            "quality": [1.7, 0.5, np.inf],
            "cost_usd": [-1.0, 0.1, 0.1],
        }
    )
    rewrite_part(tmp_path / "set", "outcomes.parquet", rows)
    with pytest.raises(EvalSetError) as caught:
        load_evalset(tmp_path / "set")
    text = str(caught.value)
    for hint in ("not among the queries", "not in evalset.yaml", "more than once", "1.7", "-1.0"):
        assert hint in text


@pytest.mark.parametrize(
    ("column", "values", "hint"),
    [
        ("query_id", ["a", "a", "b"], "more than once"),
        ("text", ["x", "", "y"], "empty or not text"),
        ("language", ["en", "English", "de"], "ISO 639"),
        ("turn", [0, 1, 1], "turn"),
        ("label_reasoning", [0.1, 0.2, 1.5], "label_reasoning"),
        ("surprise", [1, 2, 3], "is not a column"),
    ],
)
def test_queries_that_break_a_rule_are_refused(tmp_path, column, values, hint):
    with pytest.raises(EvalSetError, match=hint):
        saved(tmp_path / "set", queries=queries().assign(**{column: values}))
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"models": ("cheap", "<b>strong</b>")},
        {"models": ("cheap", "cheap")},
        {"quality": np.full((3, 2), 1.7)},
        {"quality": np.full((3, 2), np.nan)},
        {"cost_usd": np.full((3, 2), -0.1)},
        {"cost_usd": np.zeros((2, 2))},
        {"queries": queries().iloc[:0], "quality": np.zeros((0, 2)), "cost_usd": np.zeros((0, 2))},
    ],
)
def test_content_that_breaks_a_rule_leaves_nothing(tmp_path, change):
    with pytest.raises(EvalSetError):
        saved(tmp_path / "set", **change)
    assert list(tmp_path.iterdir()) == []


def test_a_set_is_only_replaced_when_asked(tmp_path):
    first = saved(tmp_path / "set")
    with pytest.raises(EvalSetError, match="--force"):
        saved(tmp_path / "set", name="second")
    assert load_evalset(tmp_path / "set").digest == first.digest
    assert saved(tmp_path / "set", name="second", force=True).name == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_that_is_no_eval_set_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("precious")
    with pytest.raises(EvalSetError, match="not an eval set"):
        saved(tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "precious"


def test_a_failed_replacement_leaves_the_old_folder(tmp_path):
    target = tmp_path / "folder"
    replace_folder(target, lambda folder: (folder / "x").write_text("old") and None)

    def fail(folder):
        (folder / "x").write_text("new")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace_folder(target, fail)
    assert (target / "x").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("hydra.evalset/v1", "hydra.evalset/v9", "schema"),
        ("synthetic: false", "synthetic: perhaps", "synthetic"),
        ("name: small", "name: [1]", "name"),
        ("name: small", "nome: small", "nome"),
        ("- cheap", "- <img>", "models"),
        ("origin: ''", "origin: &a x\nlicence: *a", "aliases"),
        ("name: small", "name: [", "YAML"),
    ],
)
def test_a_broken_manifest_says_where(tmp_path, old, new, hint):
    saved(tmp_path / "set")
    file = tmp_path / "set" / "evalset.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(EvalSetError, match=hint):
        load_evalset(tmp_path / "set")


def test_a_folder_without_an_eval_set_says_so(tmp_path):
    with pytest.raises(EvalSetError, match=r"has no evalset\.yaml"):
        load_evalset(tmp_path)
    with pytest.raises(EvalSetError, match="is not a folder"):
        load_evalset(tmp_path / "nowhere")


def test_the_list_shows_sound_and_broken_sets(tmp_path):
    saved(tmp_path / "b")
    saved(tmp_path / "a")
    (tmp_path / "a" / "queries.parquet").write_bytes(b"PAR1")
    (tmp_path / "other").mkdir()
    broken, sound = list_evalsets(tmp_path)
    assert (sound.n, sound.models, sound.problem) == (3, ("cheap", "strong"), "")
    assert broken.path.name == "a"
    assert broken.problem
    assert list_evalsets(tmp_path / "nowhere") == ()


def test_a_parquet_file_that_inflates_is_stopped(tmp_path):
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["y" * 100_000])
    pq.write_table(pa.table({"text": cells}), tmp_path / "bomb.parquet", store_schema=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 200_000
    with pytest.raises(OverflowError, match="64 MiB"):
        read_arrow(tmp_path / "bomb.parquet", 64 << 20)


def test_a_target_that_was_taken_meanwhile_is_not_overwritten(tmp_path):
    target = tmp_path / "folder"

    def somebody_is_first(folder):
        target.mkdir()
        (target / "x").write_text("theirs")
        (folder / "x").write_text("ours")

    with pytest.raises(OSError, match="not empty"):
        replace_folder(target, somebody_is_first, replace=False)
    assert (target / "x").read_text() == "theirs"


def test_a_link_to_a_set_stays_a_link(tmp_path):
    saved(tmp_path / "set")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    saved(tmp_path / "link", name="second", force=True)
    assert (tmp_path / "link").is_symlink()
    assert load_evalset(tmp_path / "set").name == "second"


@pytest.mark.parametrize(
    "tiers",
    ["5", "[5]", "[{input: 1, output: 2}]", "[{above_tokens: 0, input: 1, output: 2}]",
     "[{above_tokens: 9, input: 1}]", "[{above_tokens: 9, input: 0, output: 2}]"],
)  # fmt: skip
def test_wrong_prices_of_long_requests_are_named(tiers):
    price = f"{{input: 1, output: 2, long_prompts: {tiers}}}"
    with pytest.raises(EvalSetError) as caught:
        parse_manifest(f"prices: {{a: {price}}}\nmodels: [a]\n".encode(), "evalset.yaml")
    named = [one for one in caught.value.problems if one.place == "prices: a"]
    assert "above_tokens: 200000" in named[0].remedy
