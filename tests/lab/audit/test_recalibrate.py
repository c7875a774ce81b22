"""Recalibration: cross-fitted, monotone, by writing system where the ratings carry it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import BundleError
from hydra_core.cli.main import main
from hydra_core.cli.predictor import _shown
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import load_scores
from hydra_core.evalsets.suspects import Suspects, answer
from hydra_core.lab.audit.recalibrate import ScriptPart, apply_curve, fit_curve, recalibrate
from hydra_core.lab.audit.tables import to_csv
from hydra_core.predictor.bundle import Curve, load_bundle

DEMO = Path("sample_data/console_demo")
SIZES = {"latin": 200, "cjk": 120, "cyrillic": 120, "other": 20}


def test_a_constant_offset_is_taken_out_on_queries_not_fitted_on():
    rng = np.random.default_rng(1)
    human = rng.random((400, 2)) * 0.8
    scores = np.clip(0.6 * human + rng.normal(scale=0.03, size=human.shape), 0, 1)
    found = recalibrate(scores, human, rng=rng)
    assert (found.after < 0.5 * found.before).all()
    assert np.abs(found.bias_after).max() < 0.01
    for curve in found.curves.common:
        assert (np.diff(curve.y) >= 0).all()
        assert (np.diff(curve.x) > 0).all()


def test_noise_gains_nothing():
    rng = np.random.default_rng(2)
    human = rng.random((200, 1))
    found = recalibrate(rng.random((200, 1)), human, rng=rng)
    level = np.abs(human - human.mean()).mean()
    assert found.after[0] > 0.95 * level


def test_too_few_ratings_are_refused():
    with pytest.raises(BundleError, match="too few"):
        recalibrate(np.zeros((5, 1)), np.zeros((5, 1)), rng=np.random.default_rng(0))


def test_scores_with_a_wide_gap_have_a_finite_curve():
    """A knot in the gap between two clumps of scores would be the mean of nothing."""
    scores = np.concatenate([np.zeros(10), np.linspace(0.9, 1.0, 10)])
    curve = fit_curve(scores, np.linspace(0.0, 1.0, 20))
    assert np.isfinite([*curve.x, *curve.y]).all()


def rated(bias, sizes=SIZES, seed=3):
    """Scores that follow the ratings, but for a bias of one writing system in dimension 1."""
    rng = np.random.default_rng(seed)
    scripts = [script for script, n in sizes.items() for _ in range(n)]
    human = 0.1 + 0.8 * rng.random((len(scripts), 2))
    scores = human + rng.normal(scale=0.05, size=human.shape)
    scores[:, 1] += [bias.get(script, 0.0) for script in scripts]
    return np.clip(scores, 0, 1), human, scripts, np.random.default_rng(1)


def test_a_bias_in_one_script_is_mended_there_and_the_others_stay_as_they_were():
    scores, human, scripts, rng = rated({"cyrillic": -0.2})
    found = recalibrate(scores, human, scripts=scripts, rng=rng)
    parts = {part.script: part for part in found.parts}
    assert {name: part.n for name, part in parts.items()} == SIZES
    assert {name: part.own for name, part in parts.items() if any(part.own)} == {
        "cyrillic": (False, True)
    }
    mended = parts["cyrillic"]
    assert mended.bias_before[1] < -0.15
    assert abs(mended.bias_after[1]) < 0.02
    assert mended.after[1] < 0.4 * mended.before[1]
    for name in ("latin", "cjk", "other"):
        assert abs(parts[name].bias_after[1]) < 0.02
        assert parts[name].after[1] < parts[name].before[1] + 0.005
    one_for_all = recalibrate(scores, human, rng=np.random.default_rng(1))
    assert one_for_all.parts == ()
    assert abs(one_for_all.bias_after[1]) < 0.02  # pooled it looks mended
    assert found.after[1] < 0.6 * one_for_all.after[1]
    # A message not among the rated ones: only its own script's curve is another.
    asked = np.full((2, 2), 0.5)
    through = found.curves.through(asked, ["latin", "cyrillic"])
    assert through[0, 0] == through[1, 0]
    assert through[0, 1] == pytest.approx(0.5, abs=0.04)
    assert through[1, 1] == pytest.approx(0.7, abs=0.06)


def test_without_a_bias_of_its_own_hardly_a_script_gets_a_curve_of_its_own():
    """Of 8 a run; one in forty is what the 95 % interval leaves to chance."""
    own = 0
    for seed in range(20):
        scores, human, scripts, rng = rated({}, seed=seed)
        parts = recalibrate(scores, human, scripts=scripts, rng=rng).parts
        own += sum(sum(part.own) for part in parts)
    assert own <= 0.025 * 8 * 20


def test_without_curves_by_script_the_figures_are_those_of_one_curve():
    scores, human, scripts, rng = rated({}, {"latin": 200, "cjk": 39})
    found = recalibrate(scores, human, scripts=scripts, rng=rng)
    plain = recalibrate(scores, human, rng=np.random.default_rng(1))
    assert found.curves.common == plain.curves.common
    assert (found.after == plain.after).all()


@pytest.mark.parametrize(("n", "own"), [(39, False), (40, True)])
def test_too_few_rated_messages_fall_back_to_the_common_curve(n, own):
    scores, human, scripts, rng = rated({"arabic": -0.3}, {"latin": 200, "arabic": n})
    found = recalibrate(scores, human, scripts=scripts, rng=rng)
    part = found.parts[-1]
    assert (part.script, part.n, part.enough, part.own) == ("arabic", n, own, (False, own))
    assert part.curve(1) == ("own" if own else "common (too few)")
    assert part.curve(0) == ("common" if own else "common (too few)")


def test_translations_of_a_task_count_once():
    scores, human, scripts, rng = rated({"cjk": -0.3}, {"latin": 200, "cjk": 60})
    tasks = np.concatenate([np.arange(200), 200 + np.arange(60) // 2])
    found = recalibrate(scores, human, groups=tasks, scripts=scripts, rng=rng)
    assert not found.parts[-1].enough


def test_the_common_curve_is_that_of_the_messages_without_one_of_their_own():
    scores, human, scripts, rng = rated({"cyrillic": -0.2})
    human = 0.8 * human  # else scores stay as they are
    found = recalibrate(scores, human, scripts=scripts, rng=rng)
    rest = np.array(scripts) != "cyrillic"
    assert found.curves.common[1] == fit_curve(scores[rest, 1], human[rest, 1])
    assert found.curves.common[0] == fit_curve(scores[:, 0], human[:, 0])
    assert found.curves.by_script[1]["cyrillic"] == fit_curve(scores[~rest, 1], human[~rest, 1])


def test_ratings_of_one_task_are_refused():
    with pytest.raises(BundleError, match="30 rated queries of one task are too few"):
        recalibrate(
            np.zeros((30, 1)), np.zeros((30, 1)), groups=np.zeros(30, dtype=np.intp),
            rng=np.random.default_rng(0),
        )  # fmt: skip


def test_the_verb_names_the_scripts_and_writes_their_curves(tmp_path, capsys):
    """Raters who find Russian messages to need more tools than the predictor says."""
    evalset = load_evalset(DEMO)
    bundle = load_bundle()
    scores = load_scores(evalset, bundle.fingerprint)
    human = scores.copy()
    russian = (evalset.queries["language"] == "ru").to_numpy()
    human[russian, 3] = np.clip(human[russian, 3] + 0.25, 0, 1)
    rows = [(query, "ana", tuple(1 + 4 * human[i]), "")
            for i, query in enumerate(evalset.query_ids)]  # fmt: skip
    (tmp_path / "rows.csv").write_bytes(to_csv(rows, bundle.dimensions))
    words = ["lab", "recalibrate", str(tmp_path / "rows.csv"), "--evalset", str(DEMO)]
    assert main([*words, "--dry-run"]) == 0
    table = capsys.readouterr().out
    line = next(one for one in table.splitlines() if one.split()[:2] == ["tool_use", "cyrillic"])
    assert line.split()[2] == "40"
    assert line.endswith("own")
    assert main([*words, "--json", "--out", str(tmp_path / "new")]) == 0
    said = json.loads(capsys.readouterr().out)["tool_use"]["by_script"]
    assert {name: part["curve"] for name, part in said.items()}["cyrillic"] == "own"
    assert said["cyrillic"]["bias_before"] < -0.2
    assert abs(said["cyrillic"]["bias_after"]) < 0.05
    assert abs(said["latin"]["bias_after"]) < 0.02
    new = load_bundle(tmp_path / "new")
    assert new.fingerprint != bundle.fingerprint
    assert "tool_use" in new.calibration_by_script["cyrillic"]


def test_the_verb_takes_a_set_in_which_only_some_rows_have_a_cluster(tmp_path):
    shutil.copytree(DEMO, tmp_path / "set")
    evalset = load_evalset(tmp_path / "set")
    queries = evalset.queries.assign(cluster=None)
    evalset = answer(
        replace(evalset, queries=queries), Suspects((np.arange(3),), {}, False), accepted=True
    )
    assert evalset.queries["cluster"].isna().any()
    bundle = load_bundle()
    scores = load_scores(evalset, bundle.fingerprint)
    rows = [(query, "ana", tuple(1 + 4 * scores[i]), "")
            for i, query in enumerate(evalset.query_ids)]  # fmt: skip
    (tmp_path / "rows.csv").write_bytes(to_csv(rows, bundle.dimensions))
    words = ["lab", "recalibrate", str(tmp_path / "rows.csv"), "--evalset", str(evalset.path)]
    assert main([*words, "--dry-run"]) == 0


def test_scores_that_no_curve_brings_nearer_stay_as_they_are():
    scores, human, scripts, rng = rated({})
    right = np.column_stack([human[:, 0], np.clip(scores[:, 1] + 0.2, 0, 1)])
    common = recalibrate(right, human, scripts=scripts, rng=rng).curves.common
    assert common[0] == Curve((0.0, 1.0), (0.0, 1.0))
    assert apply_curve(common[1], np.array([0.7])) == pytest.approx(0.5, abs=0.05)


def test_figures_of_errors_have_no_sign_and_nothing_is_minus_zero():
    figures = (np.array([value]) for value in (0.25, 0.0001, -0.0001, 0.03))
    part = ScriptPart("other", 40, True, (True,), *figures)
    assert _shown(part, 0) == ["0.250", "0.000", "0.000", "+0.030"]
