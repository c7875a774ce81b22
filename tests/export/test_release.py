import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import CatalogError, StoreError
from hydra_core.base.intervals import Interval
from hydra_core.base.list_price import LongPromptPrice
from hydra_core.catalog import load_catalog, parse_catalog, pool, semantic_diff
from hydra_core.export.release import (
    Provenance,
    check_release,
    pool_export,
    release_text,
    with_policy,
    without_header,
    write_release,
)
from hydra_core.routing.matcher import choose, shortfall
from hydra_core.routing.reload import CatalogFile
from hydra_core.routing.router import Router
from hydra_core.store import Actor, Role, open_store
from tests.catalog.small import SMALL, edited

ROOT = Path(__file__).parents[2]
FIVE = (ROOT / "catalog" / "paper_five.yaml").read_text(encoding="utf-8")
PROVENANCE = Provenance(
    revision=7,
    author="ana@example.org",
    note="cheaper nights\nas agreed",
    published_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
    evalset="console demo",
    evalset_digest="d" * 64,
    synthetic=True,
    metrics={"QR": Interval(0.931, 0.9, 0.96), "mean cost, USD per query": Interval(0.1, 0.1, 0.2)},
)


def test_a_release_is_the_catalog_below_its_provenance():
    text = release_text(FIVE, PROVENANCE)
    assert text.endswith(FIVE)
    assert not semantic_diff(parse_catalog(FIVE), parse_catalog(text))
    head = text[: -len(FIVE)]
    catalog = parse_catalog(FIVE)
    for part in (
        f"{catalog.name}, revision 7",
        catalog.digest,
        catalog.predictor_fingerprint,
        "2026-03-01 12:30:00 UTC by ana@example.org",
        "# note: cheaper nights\n#   as agreed\n",
        "tau: 0.24",
        "weights w: reasoning 1, code_generation 1",
        "weights w~: reasoning ",
        f"console demo (simulated), digest {'d' * 64}",
        "QR: 0.931 [0.9, 0.96]",
        "gpt-5.4-mini 2026-01-01",
    ):
        assert part in head
    assert all(line.startswith("# ") for line in head.splitlines())


def test_what_was_not_measured_is_said():
    text = release_text(SMALL, replace(PROVENANCE, revision=None, evalset="", note=""))
    assert "small, not published" in text
    assert "# exported: 20" in text
    assert "# published: " not in text
    assert "not measured: " in text
    assert "note: (none)" in text


def test_releasing_a_release_replaces_its_provenance():
    once = release_text(SMALL, PROVENANCE)
    again = release_text(once, replace(PROVENANCE, revision=8))
    assert again == release_text(SMALL, replace(PROVENANCE, revision=8))
    assert without_header(again) == SMALL
    assert without_header(SMALL) == SMALL


@pytest.mark.parametrize("text", [SMALL, "\ufeff" + SMALL, SMALL.replace("\n", "\r\n")])
def test_an_edit_after_the_release_shows(text):
    released = release_text(text, PROVENANCE)
    check = check_release(released)
    assert check.intact
    assert check.stated == parse_catalog(text).digest
    assert not check_release(released.replace("0.31", "0.32")).intact
    assert check_release(text) is None


def test_no_note_or_name_breaks_the_file():
    wild = "x\x00\x07\u0085\u2028: [\n# ===== end\n\ufeff&a *b !!python/object {"
    text = release_text(SMALL, replace(PROVENANCE, note=wild, author=wild, evalset=wild))
    assert not semantic_diff(parse_catalog(SMALL), parse_catalog(text))
    assert check_release(text).intact


def test_only_a_valid_catalog_is_released(tmp_path):
    broken = edited(("0.31 ", "-1 "))
    with pytest.raises(CatalogError):
        release_text(broken, PROVENANCE)
    path = tmp_path / "pool.yaml"
    path.write_text("old")
    with pytest.raises(CatalogError):
        write_release(path, broken)
    assert path.read_text() == "old"


def tuned(text, tau, weights):
    return replace(parse_catalog(text).policy, tau=tau, weights=weights)


def test_an_operating_point_is_written_into_the_policy():
    text = with_policy(SMALL, tuned(SMALL, 0.3, (1.0, 2.0)))
    policy = parse_catalog(text).policy
    assert (policy.tau, policy.weights) == (0.3, (1.0, 2.0))
    assert text == edited(("tau: 0.24", "tau: 0.3"), ("debugging: 1}", "debugging: 2.0}"))
    with pytest.raises(CatalogError):
        with_policy(SMALL, tuned(SMALL, -1, (1.0, 1.0)))


def test_the_command_line_accepts_a_release(tmp_path):
    path = tmp_path / "release.yaml"
    write_release(path, release_text(FIVE, PROVENANCE))
    assert [item.name for item in tmp_path.iterdir()] == ["release.yaml"]
    command = [sys.executable, "-m", "hydra_core", "validate", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_file_that_cannot_be_written_stays(tmp_path):
    with pytest.raises(StoreError, match="and is unchanged"):
        write_release(tmp_path / "nowhere" / "pool.yaml", SMALL)


def test_a_published_release_routes_10000_scored_queries_as_the_console_showed(tmp_path):
    today = date(2026, 3, 1)
    requirements = np.random.default_rng(42).random((10_000, 4))
    store = open_store(tmp_path / "workspace")
    ana = Actor("ana", Role.PUBLISHER)
    point = tuned(FIVE, 0.1 + 0.2 - 0.17, (1.0, 0.1 + 0.7, 1 / 3, 2.0))
    revision = store.publish("five", with_policy(FIVE, point), actor=ana, base_revision=0, note="")
    store.close()
    shown = parse_catalog(revision.yaml)
    console = pool(shown, today=today)
    gaps = shortfall(requirements, console.capabilities, console.weights)
    wanted = choose(gaps, console.cost, shown.policy.tau)

    path = tmp_path / "five.yaml"
    write_release(path, release_text(revision.yaml, replace(PROVENANCE, revision=1)))
    loaded = load_catalog(path)
    released = pool(loaded, today=today)
    gaps = shortfall(requirements, released.capabilities, released.weights)
    assert released.ids == console.ids
    assert (choose(gaps, released.cost, loaded.policy.tau) == wanted).all()
    router = Router(CatalogFile(path), today=lambda: today)
    for row in range(0, 10_000, 10):
        assert router.decide(requirements[row]).model == console.ids[wanted[row]]


def test_the_table_of_models_holds_everything_that_the_catalog_says_of_them():
    catalog = parse_catalog(SMALL)
    tier = LongPromptPrice(200_000, 1.0, 9.0)
    first = replace(catalog.models[0], tags=frozenset({"zdr", "eu"}), latency_s=1.5,
                    long_prompts=(tier,))  # fmt: skip
    frame = pool_export(replace(catalog, models=(first, *catalog.models[1:])))
    assert frame["long_prompts"][0] == "1/9 USD/Mtok above 200,000 input tokens"
    assert frame["tags"][0] == "eu, zdr"
    assert frame["latency_s"][0] == 1.5
    assert frame[["long_prompts", "tags", "latency_s"]].isna().to_numpy()[1].all()
    assert {"variant_of", "lacks", "ttft_s"} <= set(frame)


def test_a_release_by_value_says_that_tau_is_not_in_force():
    model = "outcome_model: {path: learned, sha256: " + 64 * "a" + "}\npolicy:"
    text = edited(("policy:", f"{model}\n  rule: value\n  value_usd: 0.3"))
    head = release_text(text, PROVENANCE).splitlines()
    (rule,) = (i for i, line in enumerate(head) if line.startswith("# rule: value"))
    assert head[rule].endswith("0.3 USD")
    assert head[rule + 1] == "# tau of the shortfall rule, not in force: 0.24"
    assert not any(line.startswith("# tau:") for line in head)
