"""Audit from app.py: draw, rate, agreement, and what an empty page teaches."""

from hydra_core.store import Actor, Role
from hydra_core.ui import cache

PAGE = "pages/evaluate/audit.py"
DEMO = {"set": "console_demo", "catalog": "paper_five"}


def drawn():
    evalset = next(entry for entry in cache.evalsets() if entry.key == "console_demo")
    opened = cache.evalset(evalset.info.path, evalset.info.digest)
    sample = cache.store().ratings.draw(
        "first", actor=Actor("ana", Role.PUBLISHER), evalset="console_demo",
        evalset_digest=opened.digest, dimensions=cache.bundle().dimensions,
        query_ids=opened.query_ids[:40],
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
