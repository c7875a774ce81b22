"""Audit from app.py: draw, rate, agreement, and what an empty page teaches."""

import io

from hydra_core.console import cache
from hydra_core.console.eval_sets import rating
from hydra_core.evalsets.evalset import EvalSet, save_evalset
from hydra_core.evalsets.scores import load_scores, save_scores
from hydra_core.lab.audit.tables import from_csv
from hydra_core.store import Actor, Role

PAGE = "pages/configure/eval_sets.py?part=label-quality&view=samples"
DEMO = {"set": "console_demo", "catalog": "paper_five"}


def drawn(name="first", size=40):
    evalset = next(entry for entry in cache.evalsets() if entry.key == "console_demo")
    opened = cache.evalset(evalset)
    sample = cache.store().ratings.draw(
        name, actor=Actor("ana", Role.PUBLISHER), evalset="console_demo",
        evalset_digest=opened.digest, dimensions=cache.bundle().dimensions,
        query_ids=opened.query_ids[:size],
    )  # fmt: skip
    return opened, sample


def test_without_a_sample_the_page_offers_to_draw_one(open_page):
    app = open_page(PAGE, **DEMO)
    assert not app.exception
    app.number_input[0].set_value(30)
    next(b for b in app.button if b.label == "Draw").click().run()
    assert not app.exception
    assert [len(one.query_ids) for one in cache.store().ratings.samples()] == [30]


def test_agreement_teaches_until_there_are_ratings_and_then_shows_the_papers_rows(open_page):
    app = open_page(PAGE, **DEMO)
    opened, sample = drawn()
    app.run()
    app.selectbox(key="audit.sample").set_value("first").run()
    app.segmented_control(key="audit.part").set_value("Agreement").run()
    assert "Not enough ratings yet" in " ".join(one.value for one in app.markdown)
    labels = opened.queries[[f"label_{name}" for name in sample.dimensions]].to_numpy(float)
    rows = [(query, rater, tuple(1 + 4 * labels[i]), "") for i, query in enumerate(sample.query_ids)
            for rater in ("ana", "bo")]  # fmt: skip
    cache.store().ratings.take_in(sample, rows, actor=Actor("ana", Role.PUBLISHER))
    app.run()
    assert not app.exception
    table = app.dataframe[0].value
    assert table["dimension"].tolist()[-2:] == ["Pooled", "Averaged"]
    assert table["label"].iloc[0].startswith("1.00")


def test_recalibrate_shows_what_it_does_by_writing_system(open_page):
    """Raters who find Russian messages to need more tools than the predictor says."""
    app = open_page(PAGE, **DEMO)
    opened, sample = drawn("whole", None)
    found = load_scores(opened, cache.bundle().fingerprint).copy()
    russian = (opened.queries["language"] == "ru").to_numpy()
    found[russian, 3] = (found[russian, 3] + 0.25).clip(0, 1)
    rows = [(query, "ana", tuple(1 + 4 * found[i]), "") for i, query in enumerate(sample.query_ids)]
    cache.store().ratings.take_in(sample, rows, actor=Actor("ana", Role.PUBLISHER))
    app.run()
    app.selectbox(key="audit.sample").set_value("whole").run()
    app.segmented_control(key="audit.part").set_value("Recalibrate").run()
    assert not app.exception
    table = app.dataframe[1].value
    assert len(table) == 4 * 5
    own = table[table["curve"] == "own"]
    mended = own[own["script"] == "Cyrillic"].set_index("dimension").loc["Tool use"]
    assert mended["n"] == 40
    assert mended["bias_before"] < -0.2
    assert abs(mended["bias_after"]) < 0.05


def test_the_address_names_set_sample_and_part_and_restores_them(open_page):
    app = open_page(PAGE, **DEMO)
    drawn("first")
    drawn("second")
    app.run()
    app.selectbox(key="audit.sample").set_value("second").run()
    app.segmented_control(key="audit.part").set_value("Import and export").run()
    link = {key: "".join(value) for key, value in app.query_params.items()}
    assert link == {
        **DEMO,
        "sample": "second",
        "part": "label-quality",
        "view": "samples",
        "step": "Import and export",
    }
    again = open_page(PAGE.partition("?")[0], **link)
    assert again.selectbox(key="audit.sample").value == "second"
    assert again.segmented_control(key="audit.part").value == "Import and export"


def test_an_address_with_an_unknown_sample_opens_one_that_there_is(open_page):
    open_page(PAGE, **DEMO)
    drawn("first")
    app = open_page(PAGE, **DEMO, sample="gone", step="rubbish")
    assert not app.exception
    assert app.selectbox(key="audit.sample").value == "first"


def test_recalibrate_says_how_many_ratings_are_there_and_needed(open_page):
    open_page(PAGE, **DEMO)
    _, sample = drawn()
    rows = [(query, "ana", (3.0, 3.0, 3.0, 3.0), "") for query in sample.query_ids[:12]]
    cache.store().ratings.take_in(sample, rows, actor=Actor("ana", Role.PUBLISHER))
    app = open_page(PAGE, **DEMO, sample="first", step="Recalibrate")
    assert not app.error
    told = " ".join(one.value for one in app.markdown)
    assert "12 of 40 messages of this sample are rated, at least 20 are needed. Rate more" in told


def test_a_sample_too_small_to_recalibrate_on_asks_for_a_larger_one(open_page):
    open_page(PAGE, **DEMO)
    drawn("small", 10)
    app = open_page(PAGE, **DEMO, sample="small", step="Recalibrate")
    assert "Draw a larger sample" in " ".join(one.value for one in app.markdown)


def test_a_message_to_rate_stands_in_its_own_direction(open_page):
    open_page(PAGE, **DEMO)
    drawn("first")
    app = open_page(PAGE, **DEMO, sample="first")
    (block,) = [one.proto.body for one in app.get("html") if "dir=" in one.proto.body]
    assert block.startswith('<div dir="auto"')


def test_a_set_without_labels_has_no_columns_for_them(open_page, monkeypatch):
    monkeypatch.setattr(EvalSet, "labels", lambda self, dimensions: None)
    app = open_page(PAGE, **DEMO)
    _, sample = drawn()
    rows = [(query, "ana", (3.0, 2.0, 3.0, 1.0), "") for query in sample.query_ids]
    cache.store().ratings.take_in(sample, rows, actor=Actor("ana", Role.PUBLISHER))
    app = open_page(PAGE, **DEMO, sample="first", step="Agreement")
    assert not app.exception
    tables = [table.value for table in app.dataframe]
    assert [table for table in tables if "predictor_mae" in table]
    assert not [name for table in tables for name in table if name.startswith("label_")]


def test_label_quality_opens_with_ratings_where_there_are_no_runs(open_page):
    page = "pages/configure/eval_sets.py?part=label-quality"
    assert "No labelling run yet" in " ".join(one.value for one in open_page(page).markdown)
    drawn("first")
    app = open_page(page, **DEMO)
    assert app.segmented_control(key="label_quality.view").value == "samples"
    assert app.selectbox(key="audit.sample").value == "first"


def test_a_set_of_three_queries_can_be_rated(open_page, workspace):
    shipped = cache.evalset(next(one for one in cache.evalsets() if one.key == "console_demo"))
    few = save_evalset(
        workspace / "evalsets" / "few", name="few", queries=shipped.queries.head(3),
        models=shipped.models, quality=shipped.quality[:3], cost_usd=shipped.cost_usd[:3],
    )  # fmt: skip
    bundle = cache.bundle()
    scores = load_scores(shipped, bundle.fingerprint)[:3]
    save_scores(few, bundle.fingerprint, bundle.dimensions, scores)
    app = open_page(PAGE, set="my/few", catalog="paper_five")
    assert not app.exception
    next(b for b in app.button if b.label == "Draw").click().run()
    assert not app.exception
    assert [len(one.query_ids) for one in cache.store().ratings.samples()] == [3]


def test_the_ids_of_a_sample_can_be_exported_before_anything_is_rated(open_page):
    open_page(PAGE, **DEMO)
    _, sample = drawn()
    rated = [(sample.query_ids[3], "ana", (4.0, 3.0, 2.0, 1.0), "because")]
    cache.store().ratings.take_in(sample, rated, actor=Actor("ana", Role.PUBLISHER))
    written = rating.export(sample)
    lines = written.decode().splitlines()
    assert len(lines) == 41
    assert {line.partition(",")[0] for line in lines[1:]} == set(sample.query_ids)
    file = io.BytesIO(written)
    file.name = "first.csv"
    assert from_csv(file, sample.dimensions, sample.query_ids) == rated
    app = open_page(PAGE, **DEMO, sample="first", step="Import and export")
    (button,) = app.get("download_button")
    assert "1 rating of 40 queries" in button.proto.label
    assert not button.proto.disabled
