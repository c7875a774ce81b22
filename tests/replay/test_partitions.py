"""Sweeps over parts: exact at the grid, the same on every engine, resumable, bounded."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.base.types import DIMENSIONS, LEVEL_DIMENSION, Pool
from hydra_core.catalog import pool
from hydra_core.cli.main import main
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay import partitions as parts_module
from hydra_core.replay.frontier import frontier
from hydra_core.replay.partitions import Engine, parts_of, run, tasks
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.sweep_parts import (
    SweepParts,
    grid_of,
    key_of,
    merged,
    pool_of,
    require_whole_clusters,
)
from hydra_core.routing.matcher import shortfall
from tests.routing.conftest import make_catalog

ENGINES = [
    Engine.LOCAL,
    pytest.param(
        Engine.RAY,
        marks=[
            pytest.mark.filterwarnings("default"),  # Ray's own
            pytest.mark.skipif(
                importlib.util.find_spec("ray") is None,
                reason="Ray is not installed; `make ray-test` does it",
            ),
        ],
    ),
]
TODAY = date(2026, 1, 1)
SPECS = tuple(make_catalog().model(name) for name in pool(make_catalog(), today=TODAY).ids)


@pytest.fixture
def models():
    return pool(make_catalog(), today=TODAY)


def written(folder, models, counts, *, clusters=False):
    """Parts with random outcomes; returns everything they hold, one after the other."""
    rng = np.random.default_rng(3)
    whole = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, n in enumerate(counts):
        needs = rng.random((n, len(DIMENSIONS)))
        level = models.capabilities.mean(axis=1) - needs.mean(axis=1)[:, None]
        quality = (rng.random((n, 3)) < 0.5 + level / 2).astype(float)
        cost = rng.lognormal(size=(n, 3)) * models.cost / 1e3
        columns = {f"requirement:{name}": needs[:, k] for k, name in enumerate(DIMENSIONS)}
        for j, model in enumerate(models.ids):
            columns |= {f"quality:{model}": quality[:, j], f"cost_usd:{model}": cost[:, j]}
        if clusters:
            columns["cluster"] = np.arange(n) // 4
        pq.write_table(pa.table(columns), folder / f"part-{number:03}.parquet")
        whole.append((needs, quality, cost))
    return [np.concatenate(arrays) for arrays in zip(*whole, strict=True)]


def swept(folder, out, models, engine=Engine.LOCAL, resamples=0, points=200):
    found = parts_of(folder)
    taus = grid_of(found, models, DIMENSIONS, points, SPECS)
    job = SweepParts(models, DIMENSIONS, taus, resamples, SPECS)
    todo = tasks(found, out, f".{key_of(job, found)}.npz")
    run(job, todo, engine, 2)
    return merged(todo, taus)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_grid_is_exact_on_every_engine(tmp_path, models, engine):
    needs, quality, cost = written(tmp_path / "parts", models, [900, 0, 300])
    found = swept(tmp_path / "parts", tmp_path / "out", models, engine, resamples=10)
    short = shortfall(needs, models.capabilities, models.weights)
    exact = frontier(short, models.cost, quality, cost)
    rows = [exact.row(tau) for tau in found.table["tau"]]
    for name in ("quality", "mean_cost_usd", "misroute"):
        np.testing.assert_allclose(found.table[name], getattr(exact, name)[rows], atol=1e-12)
    assert found.n == 1_200


def test_caps_and_a_level_count_as_in_the_router(tmp_path, models):
    needs, quality, cost = written(tmp_path / "parts", models, [400])
    capabilities = np.column_stack([models.capabilities, [0.2, 0.6, 1.0]])
    caps = np.array([0.3, 1.0, 1.0, 1.0, 1.0])
    weights = np.append(models.weights, 1.0)
    names = (*DIMENSIONS, LEVEL_DIMENSION)
    levelled = Pool(models.ids, capabilities, models.cost, weights, caps, level=True)
    found = parts_of(tmp_path / "parts")
    kept = pool_of(levelled, found[0])
    taus = grid_of(found, kept, names, 100, SPECS)
    job = SweepParts(kept, names, taus, 0, SPECS)
    todo = tasks(found, tmp_path / "out", ".npz")
    run(job, todo, Engine.LOCAL, 1)
    short = shortfall(levelled.capped(needs), capabilities, weights)
    exact = frontier(short, models.cost, quality, cost)
    rows = [exact.row(tau) for tau in taus]
    np.testing.assert_allclose(merged(todo, taus).table["quality"], exact.quality[rows], atol=1e-12)
    bare = SweepParts(replace(kept, caps=None), names, taus, 0, SPECS)
    assert key_of(job, found) != key_of(bare, found)


def test_gates_count_as_in_a_replay(tmp_path, models, monkeypatch):
    """A model that may not serve gets no query, needs no outcome, and makes none a misroute."""
    needs, quality, cost = written(tmp_path / "parts", models, [300])
    file = parts_of(tmp_path / "parts")[0]
    image = np.arange(300) % 5 == 0
    deny = np.array(["" if i % 7 else "strong" for i in range(300)], dtype=object)
    deny[140] = ", ".join(models.ids)  # no model is left
    table = pq.read_table(file).append_column("has_image", pa.array(image))
    table = table.append_column("deny", pa.array(deny.tolist()))
    gaps = pa.array(np.where(image, np.nan, quality[:, 0]))
    at = table.column_names.index("quality:cheap")
    pq.write_table(table.set_column(at, "quality:cheap", gaps), file)
    specs = tuple(replace(one, vision=one.id != "cheap") for one in SPECS)
    closed = np.column_stack([image, np.zeros(300, bool), deny == "strong"])
    closed[140] = True
    kept = ~closed.all(axis=1)
    short = np.where(closed, 1e9, shortfall(needs, models.capabilities, models.weights))[kept]
    exact = frontier(short, models.cost, np.where(closed, 0.0, quality)[kept], cost[kept])
    taus = grid_of([file], models, DIMENSIONS, 100, specs)
    assert taus[-1] == exact.knob[-1]
    monkeypatch.setattr(parts_module, "BATCH_ROWS", 70)
    task = tasks([file], tmp_path / "out", ".npz")[0]
    SweepParts(models, DIMENSIONS, taus, 20, specs)(task)
    found = merged([task], taus)
    assert (found.n, found.gone, found.gated) == (299, 1, int(closed[kept].any(axis=1).sum()))
    rows = [exact.row(tau) for tau in taus]
    for name in ("quality", "mean_cost_usd", "misroute"):
        np.testing.assert_allclose(found.table[name], getattr(exact, name)[rows], atol=1e-12)
    assert (found.table["quality_lo"] <= found.table["quality"]).all()
    free = SweepParts(models, DIMENSIONS, taus, 20, SPECS)
    assert key_of(free, [file]) != key_of(replace(free, specs=specs), [file])


def test_a_flag_that_is_a_word_is_refused_by_name(tmp_path, models):
    written(tmp_path / "parts", models, [3])
    file = parts_of(tmp_path / "parts")[0]
    table = pq.read_table(file).append_column("has_image", pa.array(["no", "no", "yes"]))
    pq.write_table(table, file)
    with pytest.raises(EvalSetError, match="has_image: must hold true and false only"):
        grid_of([file], models, DIMENSIONS, 10, SPECS)


@pytest.mark.parametrize(("clusters", "resamples"), [(False, 0), (True, 50)])
def test_batches_add_up_and_a_cluster_in_two_of_them_counts_once(
    tmp_path, models, monkeypatch, clusters, resamples
):
    written(tmp_path / "parts", models, [1_000], clusters=clusters)
    found = parts_of(tmp_path / "parts")
    taus = grid_of(found, models, DIMENSIONS, 100, SPECS)
    tables = []
    for rows in (1_000, 130):
        monkeypatch.setattr(parts_module, "BATCH_ROWS", rows)
        task = tasks(found, tmp_path / str(rows), ".npz")[0]
        SweepParts(models, DIMENSIONS, taus, resamples, SPECS)(task)
        tables.append(merged([task], taus).table)
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-12)


def test_a_handful_of_queries_has_no_interval(tmp_path, models):
    written(tmp_path / "parts", models, [4])
    job = SweepParts(models, DIMENSIONS, np.zeros(1), 500, SPECS)
    todo = tasks(parts_of(tmp_path / "parts"), tmp_path / "out", ".npz")
    job(todo[0])
    found = merged(todo, job.taus).table
    assert found["quality"].notna().all()
    assert found["quality_lo"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [False, True])
def test_the_bootstrap_is_as_wide_as_the_formula(tmp_path, models, clusters):
    _, quality, _ = written(tmp_path / "parts", models, [1_000, 1_000], clusters=clusters)
    found = swept(tmp_path / "parts", tmp_path / "out", models, resamples=2_000, points=5).table
    last = found.iloc[-1]  # at the largest tau everything goes to the cheapest model
    groups = np.arange(2_000) // 4 if clusters else None
    wanted = mean_interval(quality[:, 0], groups)
    assert last["quality"] == pytest.approx(wanted.value)
    width = last["quality_hi"] - last["quality_lo"]
    assert width == pytest.approx(wanted.hi - wanted.lo, rel=0.08)


@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("cluster", [["a", "b"], [], ["c", "b"]], r"cluster: 'b' lies in part-000.parquet, too"),
        ("cluster", [[1, 2], [], [None, 2]], r"cluster: '2' lies in part-000.parquet, too"),
        ("conversation_id", [["a"], ["a"]], r"part-001.parquet: conversation_id: 'a' lies"),
        ("cluster", [["a", "a"], [None, "b"], [None]], ""),
        ("cluster", [[1.0, np.nan], [np.nan, 2.0]], ""),
        ("group", [["a"], ["a"]], ""),
    ],
)
def test_a_cluster_lies_in_one_part(tmp_path, name, columns, said):
    for number, values in enumerate(columns):
        _saved(pa.table({name: values}), tmp_path / f"part-{number:03}.parquet")
    with pytest.raises(EvalSetError, match=said) if said else contextlib.nullcontext():
        require_whole_clusters(parts_of(tmp_path))


def test_a_stopped_sweep_goes_on_and_another_ones_results_are_not_taken(tmp_path, models):
    written(tmp_path / "parts", models, [50, 50, 50])
    found = parts_of(tmp_path / "parts")
    taus = grid_of(found, models, DIMENSIONS, 50, SPECS)
    job = SweepParts(models, DIMENSIONS, taus, 0, SPECS)
    todo = tasks(found, tmp_path / "out", f".{key_of(job, found)}.npz")
    job(todo[1])
    assert run(job, todo, Engine.LOCAL, 1) == 2
    assert run(job, todo, Engine.LOCAL, 1) == 0
    other = SweepParts(models, DIMENSIONS, taus, 5, SPECS)
    assert key_of(other, found) != key_of(job, found)


def test_a_part_with_a_gap_or_without_a_column_is_named(tmp_path, models):
    folder = tmp_path / "parts"
    written(folder, models, [10])
    part = folder / "part-000.parquet"
    table = pq.read_table(part)
    with pytest.raises(EvalSetError, match="outcomes of no model"):
        pool_of(pool(make_catalog(), today=TODAY), _saved(table.select([0]), folder / "x.parquet"))
    holes = pa.array([None, *table["quality:mid"].to_pylist()[1:]])
    at = table.column_names.index("quality:mid")
    _saved(table.set_column(at, "quality:mid", holes), part)
    (folder / "x.parquet").unlink()
    with pytest.raises(EvalSetError, match=r"quality:mid: holds missing values"):
        swept(folder, tmp_path / "out", models)
    _saved(table.drop_columns(["requirement:debugging"]), part)
    with pytest.raises(EvalSetError, match="requirement:debugging"):
        swept(folder, tmp_path / "out", models)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("quality:mid", [85.0, 40.0], r"quality:mid: lies from 40 to 85 \(scale it to 0 to 1"),
        ("cost_usd:mid", [-0.1, 0.2], r"cost_usd:mid: lies from -0.1 to 0.2"),
        (
            "quality:mid",
            ["yes", "no"],
            "quality:mid: holds missing values, or some that are not numbers",
        ),
    ],
)
def test_values_that_no_outcome_has_are_named(tmp_path, models, name, values, said):
    folder = tmp_path / "parts"
    written(folder, models, [2])
    part = folder / "part-000.parquet"
    table = pq.read_table(part)
    _saved(table.set_column(table.column_names.index(name), name, pa.array(values)), part)
    with pytest.raises(EvalSetError, match=said):
        swept(folder, tmp_path / "out", models)


def test_a_part_that_was_written_again_is_swept_again(tmp_path, models):
    folder = tmp_path / "parts"
    written(folder, models, [10])
    swept(folder, tmp_path / "out", models)
    part = folder / "part-000.parquet"
    os.utime(part, ns=(1, 1))
    swept(folder, tmp_path / "out", models)
    assert len(list((tmp_path / "out").iterdir())) == 2


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"message": ["hi"]}, r"text: the column is missing"),
        ({"text": ["hi", None]}, r"text, row 2: holds no text \(drop the row\)"),
        ({"text": ["hi", "ho"], "turn": [None, 0.5]}, r"turn, row 2: is no whole number from 1"),
    ],
)
def test_messages_that_cannot_be_scored_are_named(tmp_path, columns, said):
    folder = tmp_path / "messages"
    folder.mkdir()
    _saved(pa.table(columns), folder / "part.parquet")
    todo = tasks(parts_of(folder), tmp_path / "out", ".parquet")
    with pytest.raises(EvalSetError, match=said):
        parts_module.ScoreParts()(todo[0])
    assert not todo[0].target.exists()


def test_a_turn_that_is_not_given_is_the_first(tmp_path):
    folder = tmp_path / "messages"
    folder.mkdir()
    _saved(pa.table({"text": ["hi", "ho"], "turn": [np.nan, 2.0]}), folder / "part.parquet")
    todo = tasks(parts_of(folder), tmp_path / "out", ".parquet")
    parts_module.ScoreParts()(todo[0])
    found = pq.read_table(todo[0].target)["requirement:reasoning"].to_numpy()
    exact = default_predictor().predict(["hi", "ho"], [1, 2]).requirements[:, 0]
    np.testing.assert_allclose(found, exact)


def _saved(table, path):
    pq.write_table(table, path)
    return path


def messages(folder, counts):
    folder.mkdir()
    for number, n in enumerate(counts):
        texts = [f"message {number}-{row}: why does loop {row} never end?" for row in range(n)]
        table = pa.table({"query_id": [f"{number}-{row}" for row in range(n)], "text": texts})
        pq.write_table(table, folder / f"part-{number}.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_scoring_that_was_killed_goes_on_with_equal_output(tmp_path, engine):
    messages(tmp_path / "messages", [20, 20, 20])
    out, last = tmp_path / "parts", tmp_path / "messages" / "part-2.parquet"
    last.rename(tmp_path / "last")
    os.mkfifo(last)  # whoever reads it waits, until it is killed
    words = ["score-parts", str(tmp_path / "messages"), "--out", str(out)]
    words += ["--engine", engine.value, "--workers", "1"]
    process = psutil.Popen([sys.executable, "-m", "hydra_core", *words], stderr=subprocess.DEVNULL)
    try:
        while len(list(out.glob("*.parquet"))) < 2:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()
    (tmp_path / "last").replace(last)
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    torn, others = (out / f".{name}.{process.pid}.0a.partial" for name in ("part-2.parquet", "x"))
    for path in (torn, others):
        path.write_bytes(b"PAR1")
    assert main(words) == 0
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert not torn.exists()
    assert others.exists()  # not of this job
    predictor = default_predictor()
    for path in parts_of(out):
        table = pq.read_table(path)
        wanted = predictor.predict(table["text"].to_pylist()).requirements
        for k, name in enumerate(predictor.bundle.dimensions):
            assert table[f"requirement:{name}"].to_pylist() == wanted[:, k].tolist()
    assert len(parts_of(out)) == 3


def test_the_command_writes_the_curve(tmp_path, capsys):
    catalog = Path("catalog/paper_five.yaml")
    messages(tmp_path / "messages", [20])
    scored = tmp_path / "parts"
    assert main(["score-parts", str(tmp_path / "messages"), "--out", str(scored)]) == 0
    part = parts_of(scored)[0]
    table = pq.read_table(part)
    for model, cost in (("gpt-5.4-mini", 0.1), ("gpt-5.4", 1.0)):
        table = table.append_column(f"quality:{model}", pa.array([1.0] * 20))
        table = table.append_column(f"cost_usd:{model}", pa.array([cost] * 20))
    _saved(table, part)
    words = ["sweep", str(scored), "--catalog", str(catalog), "--out", str(tmp_path / "out")]
    assert main([*words, "--points", "50"]) == 0
    assert "20 queries" in capsys.readouterr().out
    curve = pq.read_table(tmp_path / "out" / "curve.parquet").to_pandas()
    assert curve["quality"].eq(1.0).all()
    assert curve["mean_cost_usd"].iloc[-1] == pytest.approx(0.1)
    assert main([*words, "--points", "1"]) == 2
    table = table.append_column("cluster", pa.array(["a"] * 20))
    for place in (part, part.with_name("part-9.parquet")):
        _saved(table, place)
    assert main(words) == 2
    assert "cluster: 'a' lies in part-0.parquet, too" in capsys.readouterr().err
    assert main([*words, "--resamples", "0"]) == 0
