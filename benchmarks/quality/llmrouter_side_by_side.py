"""The routers of the public package `llmrouter-lib` and our baselines, on the same folds.

    python -m benchmarks.quality.llmrouter_side_by_side [--shared ../shared/data/replay]
        [--workspace DIR] [--only NAME ...] [--out docs/llmrouter.md]

Their trainers and `route_single` run as published; only the embedding they look up is replaced by
the text features our baselines read, fitted on the training part. No language model is called.
Exits with 2 where the package is missing.
"""

import contextlib
import importlib
import io
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.quality.real_policies import flat_pool
from benchmarks.quality.real_pools import SETS, evalset_of, options_of_sets
from hydra_core.base.types import Selection
from hydra_core.replay.baselines import TextFeatures, hashed_texts, run_baselines
from hydra_core.replay.metrics import picked, single_models
from hydra_core.replay.replay import align, folds
from hydra_core.replay.significance import paired_bootstrap
from hydra_core.replay.verdict import verdict

INSTALL = """\
python -m venv ../venv-llmrouter
../venv-llmrouter/bin/pip install -e '.[train]' pydantic pillow
../venv-llmrouter/bin/pip install --no-deps llmrouter-lib==0.4.0
../venv-llmrouter/bin/python -m benchmarks.quality.llmrouter_side_by_side --out docs/llmrouter.md"""
PARTS = 2
CLUSTERS = "Avengers-Pro style"
#: Costs further apart than this share of theirs are not counted as the same cost.
SAME_COST = 0.05
#: Ours at a cost is a draw per query between two settings; the mean of this many is compared.
DRAWS = 100
ROUNDING = 1e-9
#: A router that sends this share of each half to one model is no better than that model alone.
CONSTANT = 0.95
VERSIONS = ("llmrouter-lib", "torch", "scikit-learn", "numpy", "pandas")
#: What a third-party router may fail with; the table then says so.
FAILURES = (ArithmeticError, AttributeError, ImportError, LookupError, OSError)
FAILURES += (RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, eq=False)
class Theirs:
    """One of their routers, its settings, and our baseline of the nearest idea."""

    name: str
    module: str
    router: str
    trainer: str
    settings: dict
    ours: str


def _knn(neighbours):
    settings = {"n_neighbors": neighbours, "weights": "uniform", "metric": "minkowski", "p": 2}
    return Theirs(
        f"kNN, {neighbours} neighbours",
        "knnrouter",
        "KNNRouter",
        "KNNRouterTrainer",
        settings,
        "kNN",
    )


def _factorisation(epochs):
    settings = {"latent_dim": 128, "lr": 0.001, "epochs": epochs, "noise_alpha": 0.0}
    name = f"MF, {epochs} epochs"
    return Theirs(name, "mfrouter", "MFRouter", "MFRouterTrainer", settings, "RouteLLM-MF style")


#: The first kNN and the first MF, the SVM and the MLP are set as their example configurations are;
#: the second kNN votes among as many as ours averages over, the second MF is trained to the end.
ROUTERS = (
    _knn(5),
    _knn(40),
    _factorisation(5),
    _factorisation(200),
    Theirs(
        "SVM",
        "svmrouter",
        "SVMRouter",
        "SVMRouterTrainer",
        {"kernel": "rbf", "C": 1.0, "gamma": "scale"},
        "text regression",
    ),
    Theirs(
        "MLP",
        "mlprouter",
        "MLPRouter",
        "MLPTrainer",
        {
            "hidden_layer_sizes": [128, 64],
            "activation": "relu",
            "lr": 0.001,
            "epochs": 100,
            "batch_size": 32,
            "alpha": 0.0001,
        },
        "text regression",
    ),
)
OURS = tuple(dict.fromkeys([one.ours for one in ROUTERS] + [CLUSTERS]))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One fold: rows, the features of every query, and the models in the order of tied labels."""

    train: np.ndarray
    test: np.ndarray
    features: np.ndarray
    order: list[int]


def write_inputs(folder, theirs, data, part):
    """Their files: outcomes by query and model, embeddings, a configuration. Ids stand for texts.

    Of equal outcomes their code labels the query with the model that is written first.
    """
    import torch
    import yaml

    lines = [
        {
            "query": data.query_ids[row],
            "model_name": data.pool.ids[model],
            "performance": float(data.quality[row, model]),
            "embedding_id": number,
        }
        for number, row in enumerate(part.train)
        for model in part.order
    ]
    outcomes, vectors = folder / "routing.jsonl", folder / "embeddings.pt"
    outcomes.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    torch.save(torch.tensor(part.features[part.train], dtype=torch.float32), vectors)
    saved = str(folder / f"{theirs.module}.pkl")
    settings = dict(theirs.settings)
    if theirs.module == "mfrouter":
        settings["text_dim"] = part.features.shape[1]
    config = {
        "data_path": {"routing_data_train": str(outcomes), "query_embedding_data": str(vectors)},
        "model_path": {"ini_model_path": "", "save_model_path": saved, "load_model_path": saved},
        "hparam": settings,
    }
    path = folder / "router.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def their_choice(theirs, data, part, seed):
    """(test,) model indices by their trainer and their `route_single`."""
    import torch

    package = importlib.import_module(f"llmrouter.models.{theirs.module}")
    routing = importlib.import_module(f"llmrouter.models.{theirs.module}.router")
    rows = {query: row for row, query in enumerate(data.query_ids)}
    vectors = torch.tensor(part.features, dtype=torch.float32)
    routing.get_longformer_embedding = lambda query: vectors[rows[query]]
    index = {model: i for i, model in enumerate(data.pool.ids)}
    with (
        tempfile.TemporaryDirectory() as scratch,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        path = write_inputs(Path(scratch), theirs, data, part)
        torch.manual_seed(seed)
        router = getattr(package, theirs.router)(str(path))
        getattr(package, theirs.trainer)(router, device="cpu").train()
        found = [router.route_single({"query": data.query_ids[row]}) for row in part.test]
    return np.array([index[one["model_name"]] for one in found])


def orders(data, train):
    """Which model a tied query is labelled with, decided on the training part."""
    cost, quality = data.cost_usd[train].mean(axis=0), data.quality[train].mean(axis=0)
    return {"cheapest": list(np.argsort(cost)), "best": list(np.lexsort((cost, -quality)))}


def their_choices(data, texts, seed):
    """{(router, tie): (n,) choice}, and {router: why} for those that cannot be run."""
    hashed = hashed_texts(texts)
    everything = np.arange(len(texts))
    choices, broken = {}, {}
    for fold in folds(data, PARTS, np.random.default_rng(seed)):  # as run_baselines cuts
        fitted = TextFeatures(hashed[fold.train], seed=seed)
        features = fitted(hashed, everything, data.requirements).text
        for tie, order in orders(data, fold.train).items():
            part = Part(fold.train, fold.test, features, order)
            for theirs in ROUTERS:
                choice = choices.setdefault((theirs, tie), np.zeros(len(texts), dtype=np.intp))
                try:
                    choice[fold.test] = their_choice(theirs, data, part, seed)
                except FAILURES as error:
                    broken[theirs.name] = f"{type(error).__name__}: {error}"
    kept = {key: choice for key, choice in choices.items() if key[0].name not in broken}
    return kept, broken


def figures(data, choice):
    """Accuracy, QR, cost, the share routed as the oracle does, and the most used model."""
    best = data.oracle
    quality = picked(data.quality, choice).mean()
    shares = np.bincount(choice, minlength=len(data.pool.ids)) / len(choice)
    common = int(shares.argmax())
    return [
        f"{100 * quality:.1f}",
        f"{100 * quality / picked(data.quality, best).mean():.1f}",
        f"{picked(data.cost_usd, choice).mean():.4g}",
        f"{100 * (choice == best).mean():.0f}",
        f"{100 * shares[common]:.0f} {data.pool.ids[common]}",
    ]


def interval_text(found, same_cost=True):
    text = f"{100 * found.value:+.1f} [{100 * found.lo:+.1f}, {100 * found.hi:+.1f}]"
    return text if same_cost else f"({text})"


def against(data, choice, run, seed):
    """Ours at the cost of a choice of theirs.

    Returns:
        Our accuracy and cost, the interval of theirs - ours (paired by query), and whether the
        costs agree.
    """
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice).mean()
    rng = np.random.default_rng(seed)
    drawn = [run.at_cost(cost, rng) for _ in range(DRAWS)]
    same = np.mean([picked(data.quality, one) for one in drawn], axis=0)
    paid = float(np.mean([picked(data.cost_usd, one).mean() for one in drawn]))
    columns = np.column_stack([quality, same])
    found = paired_bootstrap(columns, lambda means: means[:, 0] - means[:, 1], rng=rng)
    return float(same.mean()), paid, found, bool(abs(paid / cost - 1) <= SAME_COST)


def one_row(data, theirs, tie, choice, ours, seed):
    """One of their routers beside ours.

    Returns:
        The cells; +1, -1 or 0 where the interval lies above, below or on 0; do the costs agree.
    """
    accuracy, paid, found, agree = against(data, choice, ours[theirs.ours], seed)
    _, _, clusters, near = against(data, choice, ours[CLUSTERS], seed)
    said = verdict(data, choice, Selection.FIXED)
    qr = accuracy / picked(data.quality, data.oracle).mean()
    cells = [f"{theirs.name}; {tie}", *figures(data, choice)]
    cells += [f"{theirs.ours} {100 * accuracy:.1f}, QR {100 * qr:.1f}, ${paid:.4g}"]
    cells += [interval_text(found, agree), interval_text(clusters, near)]
    cells += [interval_text(replace(said.interval, value=said.delta))]
    return cells, int(found.lo > ROUNDING) - int(found.hi < -ROUNDING), agree


def constant(choice, halves):
    """Whether nearly all of each half goes to one model."""
    return all(np.bincount(choice[half.test]).max() >= CONSTANT * len(half.test) for half in halves)


HEAD = (
    "policy; tied labels go to | accuracy % | QR % | USD per query | as the oracle % | "
    "most used model % | ours | theirs - ours, pp | theirs - clusters, pp | "
    "theirs - fixed mix, pp"
)


def section(real, evalset, seed):
    """The Markdown of one set, and its row of the summary."""
    pool = flat_pool(evalset.models, ("unused",))
    data = align(evalset, np.zeros((len(evalset.queries), 1)), pool)
    data = replace(data, pool=replace(data.pool, cost=data.cost_usd.mean(axis=0)))
    texts = list(evalset.queries["text"].iloc[data.rows])
    n, m = data.quality.shape
    theirs, broken = their_choices(data, texts, seed)
    ours = {run.name: run for run in run_baselines(data, texts, names=OURS, seed=seed)}
    rows = [one_row(data, *key, choice, ours, seed) for key, choice in theirs.items()]
    signs = [sign for _, sign, agree in rows if agree]
    elsewhere = [sign for _, sign, agree in rows if not agree]
    halves = folds(data, PARTS, np.random.default_rng(seed))
    settled = sum(constant(choice, halves) for choice in theirs.values())
    best = max(single_models(data), key=lambda one: (one.quality, -one.mean_cost_usd))
    still = [("oracle", data.oracle), (f"always {best.model}", np.full(n, best.index))]
    cost = "estimated" if evalset.cost_estimated else "billed"
    lines = [f"## {real.title}", "", f"{n:,} queries, {m} models, costs {cost}.", ""]
    lines += [f"| {HEAD} |", "|---" * (HEAD.count("|") + 1) + "|"]
    for name, choice in still:
        lines.append(f"| {name} | {' | '.join(figures(data, choice))} | | | | |")
    lines += ["| " + " | ".join(cells) + " |" for cells, *_ in rows]
    lines += [f"\nNot run: {name} ({why})." for name, why in broken.items()] + [""]
    counts = [len(rows), settled, len(signs), *(signs.count(sign) for sign in (1, -1, 0))]
    counts += [elsewhere.count(1), elsewhere.count(-1)]
    return lines, f"| {real.name} | {' | '.join(map(str, counts))} |"


SUMMARY = (
    "set | rows | nearly one model | at the same cost | better than ours | worse than ours | "
    "no measurable difference | at another cost: better than ours | worse than ours"
)
NOTES = (
    "**Same data.** Both sides are cross-fitted in the same two halves and read the same text "
    "features: character n-grams, TF-IDF, 64 components, fitted on the training half. These stand "
    "in for the Longformer embeddings that their package downloads; with those, figures may "
    "differ. Their trainers and `route_single` run unchanged. `route_batch` is not used, because "
    "it calls the API of the routed model.",
    "**Their routers.** The four routers learn which single model was best on a query. They do not "
    "know costs and have no threshold, so each is one point. If several models do equally well, "
    "their code takes the one that the data file names first. Both orders are shown: the cheapest "
    "first, and the best on the training half first. If most labels name one model, a router that "
    "learns labels sends nearly everything to it: `nearly one model` counts the rows where "
    f"{100 * CONSTANT:.0f} % or more of each half go to one model.",
    "**Our routers.** They are replayed at the threshold that costs the same (a draw between two "
    f"adjacent ones, mean of {DRAWS}). If ours does not come within {100 * SAME_COST:.0f} % of "
    "their cost, its nearest threshold is used, and the difference is in brackets and counted "
    "apart. In these cases theirs always uses an expensive model that our learned threshold does "
    "not choose.",
    "**Columns.** QR is accuracy as a share of the oracle's. `as the oracle` is the share of "
    "queries that go to the oracle's model (the cheapest of the best). `theirs - ours` is the "
    "difference in accuracy with its 95 % interval (bootstrap over queries, paired, 10,000 "
    "resamples). `theirs - clusters` is the same against our Avengers-Pro style clusters, which "
    "have no counterpart among the four. `theirs - fixed mix` is the same against the best fixed "
    "mix of models at their cost, picked in hindsight. Intervals are not adjusted for their "
    "number. Their SVM and MLP are compared with our text regression, which is the most similar.",
    "**Settings.** They are those of their example configurations (kNN 5 neighbours, MF 5 epochs). "
    "Added are kNN with our 40 neighbours and MF with 200 epochs, because 5 are few on sets of "
    "this size. The `probability` option of SVM is left out, because its choice does not depend "
    "on it.",
)


def document(sections):
    """The whole Markdown file."""
    versions = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    lines = ["# llmrouter-lib and our baselines, side by side", ""]
    lines += [f"Written with {versions}, with these commands:", "", "```", INSTALL, "```", ""]
    for note in NOTES:
        lines += [note, ""]
    lines += [f"| {SUMMARY} |", "|---" * (SUMMARY.count("|") + 1) + "|"]
    lines += [row for _, row in sections] + [""]
    for one, _ in sections:
        lines += one
    return "\n".join(lines).rstrip() + "\n"


def missing():
    """Whether the package, or torch beneath it, is not installed."""
    try:
        version("llmrouter-lib")
    except PackageNotFoundError:
        return True
    return find_spec("torch") is None


def main():
    parser = options_of_sets(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if missing():
        print(f"llmrouter-lib is not installed here. To run this:\n{INSTALL}", file=sys.stderr)
        raise SystemExit(2)
    chosen = [real for real in SETS if not options.only or real.name in options.only]
    with tempfile.TemporaryDirectory() as scratch:
        workspace = options.workspace or Path(scratch)
        text = document(
            [
                section(real, evalset_of(real, options.shared, workspace), options.seed)
                for real in chosen
            ]
        )
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
