"""The significance table against statsmodels and a plain bootstrap on the same draws."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from hydra_core.replay.compare import PolicyRun, constant_run, policy_run
from hydra_core.replay.replay import replay
from hydra_core.replay.significance_table import (
    Entry,
    latex,
    matrix,
    pair_frame,
    significance_table,
    standing_cells,
    standing_frame,
)
from tests.replay.conftest import make_data

RESAMPLES = 200


def entries_of(data):
    taus = (0.1, 0.3)
    routed = [Entry(policy_run(f"tau {t:g}", data, replay(data, t)), "fixed") for t in taus]
    return [*routed, *(Entry(constant_run(data, model)) for model in data.pool.ids)]


def made(data, clusters=None):
    strong = constant_run(data, data.pool.ids[-1])
    rng = np.random.default_rng(7)
    return significance_table(entries_of(data), strong, clusters, rng=rng, resamples=RESAMPLES)


def resolved(data):
    return {entry.run.name: entry.run.quality >= 0.5 for entry in entries_of(data)}


@pytest.fixture(scope="module")
def data():
    return make_data(400)


def test_resolved_is_wilsons_interval(data):
    for one in made(data).standings:
        wanted = proportion_confint(one.count, 400, method="wilson")
        assert (one.resolved.lo, one.resolved.hi) == pytest.approx(wanted)


def test_p_values_are_mcnemars_with_holm(data):
    table, outcomes = made(data), resolved(data)
    strong = outcomes[table.strong]

    def p_of(a, b):
        cells = [[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]]
        exact = cells[0][1] + cells[1][0] < 25
        return sm_mcnemar(cells, exact=exact, correction=True).pvalue

    raw = [p_of(found, strong) for name, found in outcomes.items() if name != table.strong]
    said = [one.p_value for one in table.standings if one.name != table.strong]
    assert said == pytest.approx(multipletests(raw, method="holm")[1])
    pairs = [p_of(outcomes[a], outcomes[b]) for a, b in combinations(outcomes, 2)]
    wanted = multipletests(pairs, method="holm")[1]
    assert [one.p_value for one in table.contrasts] == pytest.approx(wanted)


def test_savings_are_a_plain_bootstrap_on_the_same_draws(data):
    table = made(data)
    rows = np.random.default_rng(7).integers(0, 400, (RESAMPLES, 400), dtype=np.uint16)
    base = data.cost_usd[:, -1]
    cost = entries_of(data)[0].run.cost_usd
    drawn = [1 - cost[row].mean() / base[row].mean() for row in rows]
    found = table.standings[0].cs
    assert (found.lo, found.hi) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
    assert found.value == pytest.approx(1 - cost.mean() / base.mean())


def test_clusters_are_resampled_whole_and_tested_as_statsmodels_does():
    clusters = np.arange(400) // 4
    data = make_data(400, clusters=clusters)
    table = made(data, clusters)
    assert table.independent == 100
    assert "delta method over clusters" in table.methods[0]
    outcomes = resolved(data)
    pair = table.contrasts[0]
    difference = outcomes[pair.b].astype(float) - outcomes[pair.a]
    fit = OLS(difference, np.ones(400)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    raw = significance_table(
        entries_of(data)[:2], constant_run(data, data.pool.ids[-1]), clusters,
        rng=np.random.default_rng(0), resamples=50,
    ).contrasts[0].p_value  # fmt: skip
    assert raw == pytest.approx(fit.pvalues[0])
    rows = np.random.default_rng(7).integers(0, 100, (RESAMPLES, 100), dtype=np.uint16)
    base, cost = data.cost_usd[:, -1], entries_of(data)[0].run.cost_usd
    drawn = []
    for row in rows:
        queries = np.concatenate([np.flatnonzero(clusters == unit) for unit in row])
        drawn.append(1 - cost[queries].sum() / base[queries].sum())
    found = table.standings[0].cs
    assert (found.lo, found.hi) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_only_queries_that_all_have_are_counted(data):
    fewer = data.take(np.arange(100, 400))
    strong = constant_run(data, data.pool.ids[-1])
    short = Entry(constant_run(fewer, data.pool.ids[0]))
    table = significance_table(
        [short, Entry(strong)], strong, rng=np.random.default_rng(0), resamples=50
    )
    assert table.n == 300


def test_two_policies_of_one_name_are_refused(data):
    strong = constant_run(data, data.pool.ids[-1])
    with pytest.raises(ValueError, match="different names"):
        significance_table([Entry(strong), Entry(strong)], strong, rng=np.random.default_rng(0))


def test_latex_escapes_names_and_the_matrix_is_antisymmetric(data):
    name = "50% & _$#{}~^\\"
    strong = constant_run(data, data.pool.ids[-1])
    odd = Entry(policy_run(name, data, replay(data, 0.2)))
    table = significance_table(
        [odd, Entry(strong)], strong, rng=np.random.default_rng(0), resamples=50
    )
    row = next(line for line in latex(table).splitlines() if line.startswith("50"))
    assert row.startswith(r"50\% \& \_\$\#\{\}\textasciitilde{}\textasciicircum{}")
    cells = matrix(table)
    said = (cells.iloc[i, j].strip("*").replace("\u2212", "-") for i, j in ((0, 1), (1, 0)))
    values = [float(one) for one in said]
    assert values[0] == -values[1]
    assert len(standing_frame(table)) == 2
    assert len(pair_frame(table)) == 1


def test_a_model_without_outcomes_is_open_upwards_and_not_tested():
    n = 30
    none, one = np.zeros(n), np.ones(n)
    known = PolicyRun("a", np.arange(n), ("x",), np.zeros(n, dtype=np.intp), one, one, one, none)
    open_ = replace(known, name="b", ids=("new",), quality=none, unknown=one.astype(bool))
    table = significance_table([Entry(open_), Entry(known)], known, rng=np.random.default_rng(0))
    found = table.standings[0]
    assert (found.resolved.hi, found.quality.hi, found.qr.hi) == (1.0, 1.0, 1.0)
    assert (found.only_it, found.only_strong, found.unknown) == (0, 0, 1.0)
    assert np.isnan(found.p_value)
    assert standing_cells(table)[0][2].startswith("≥ 0.0")
    assert standing_cells(table)[0][-1] == "–"
    pair = table.contrasts[0]  # the known one minus the open one: 1 at most, 0 at least
    assert (pair.quality.value, pair.quality.lo, pair.quality.hi) == (1.0, 0.0, 1.0)
    assert matrix(table).loc["a", "b"] == "≤ +100.0"
    assert matrix(table).loc["b", "a"] == "≥ −100.0"
    assert "models without outcomes" in table.methods[-1]
