"""Damaged files of every kind are read or refused; what is read comes back from disk as it was."""

import json
import random
import re

import numpy as np
import pytest

from hydra_core.base.errors import HydraError
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.draft import About, write_draft
from hydra_core.evalsets.importers.formats import Kind, looks_like, read
from hydra_core.evalsets.importers.given import AskNames, Given, NamesKnown
from hydra_core.evalsets.importers.mapping import suggest_mapping
from hydra_core.evalsets.importers.reading.tables import columns_of
from hydra_core.evalsets.importers.table import model_names, raw_rows, read_rows, read_table
from tests.evalsets.importers.test_gateways import helicone
from tests.evalsets.importers.test_harness import (
    inspect_log,
    inspect_samples,
    promptfoo_row,
    sample,
)
from tests.evalsets.importers.test_traffic import GENAI, OPENINFERENCE, generation, spend
from tests.evalsets.importers.test_wide_tables import WIDE


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


RATED = {"annotations.0.annotation.name": "ok", "annotations.0.annotation.score": 1}
FILES = {
    "wide.csv": WIDE,
    "long.csv": "query_id;text;model;quality;cost_usd\nq1;Eins;a;1;0,5\nq1;Eins;b;0;0,01\n",
    "rows.jsonl": lines(
        {"id": n, "text": f"t {n}", "model": "m", "quality": n % 2, "cost": 0.1} for n in range(9)
    ),
    "spend.jsonl": lines(spend(n) for n in range(1, 6)),
    "observations.jsonl": lines(generation(n) for n in range(1, 6)),
    "helicone.jsonl": lines(helicone(n) for n in range(5)),
    "spans.jsonl": lines(
        {"span_id": f"s{n}", "attributes": (GENAI if n % 2 else OPENINFERENCE) | RATED}
        for n in range(4)
    ),
    "samples_arc_m.jsonl": lines(sample(n) for n in range(5)),
    "log.json": json.dumps(inspect_log(inspect_samples())),
    "promptfoo.json": json.dumps(
        {"results": {"results": [promptfoo_row(n, p) for n in range(4) for p in "ab"]}}
    ),
    "promptfoo.csv": "q,[a] Ask {{q}},[b] Ask {{q}}\none,[PASS] yes,[FAIL] no\n",
}
VOTES = "request_id,quality\nr1,1\nr2,0\nr3,1\n"
SCORES = lines(
    {"name": "ok", "observation_id": f"o{n}", "data_type": "NUMERIC", "value": 1} for n in range(5)
)
MORE = {Kind.SPEND_LOGS: ("votes.csv", VOTES), Kind.LANGFUSE: ("scores.jsonl", SCORES)}
PIECES = (
    *(b'"', b",", b"\n", b"\0", b"{", b"[", b"\xff\xfe", b";", b"%", b"\xe2\x82\xac", b"1,234.5"),
    *(b"null", b"NaN", b"1e999", b"-1", b'"\\ud800"', b"true", b"[]", b"{}", b"9" * 40),
)
VALUE = re.compile(rb'(?<=[:,\[] )(?:"[^"\\]{0,40}"|-?[0-9.]+|true|false|null)|(?<=,)[^,\n"]+')


def mutated(content, rng):
    """Some bytes changed, cut, doubled or put in; some values replaced."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) or 1)
        way = rng.random()
        if way < 0.2:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif way < 0.35:
            del data[at : at + rng.choice((1, 5, 50, 500))]
        elif way < 0.5:
            data[at:at] = rng.choice(PIECES)
        elif way < 0.6:
            data[at:at] = data[: rng.choice((10, 100))]
        elif values := list(VALUE.finditer(bytes(data))):
            place = rng.choice(values)
            data[place.start() : place.end()] = rng.choice(PIECES)
    return bytes(data)


def draft_of(path, folder):
    """What an operator gets who takes every proposal."""
    kind = looks_like(path)
    if kind in (None, Kind.TABLE):
        read_rows(raw_rows(path, 5), suggest_mapping(columns_of(path)))
        ids = proposed_ids(model_names([path]))
        return read_table([path], ids=ids, need_cost=False, rates={"EUR": 1.1})
    name, content = MORE.get(kind, ("votes.csv", VOTES))
    (folder / name).write_text(content)
    more = [] if kind is Kind.HARNESS else [folder / name]
    try:
        read(kind, [path], Given(more, AskNames()))
    except NamesKnown as known:
        models = {model: name for name, model in proposed_ids(known.names).items()}
        score, labels = next(iter(known.scores), ""), dict.fromkeys(known.labels, 1.0)
        return read(kind, [path], Given(more, models, score=score, labels=labels))
    raise AssertionError("the models were not asked for")


def one(name, rng, folder):
    """Whether a mutation was read; what was read is the same from disk."""
    path, out = folder / name, folder / "set"
    path.write_bytes(mutated(FILES[name].encode(), rng))
    try:
        draft = draft_of(path, folder)
        write_draft(draft, out, About(), force=True)
    except HydraError as refused:
        return not str(refused)
    evalset = load_evalset(out)
    assert evalset.models == draft.models
    np.testing.assert_array_equal(evalset.quality, draft.quality)
    np.testing.assert_array_equal(evalset.cost_usd, draft.cost_usd)
    return True


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_is_read(tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name])
    assert draft_of(path, tmp_path).quality.size


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_read_or_refused(tmp_path, name):
    rng = random.Random(name)
    read_ones = sum(one(name, rng, tmp_path) for _ in range(12))
    assert read_ones < 12
    assert {path.name for path in tmp_path.iterdir()} <= {
        *(name, "set", "votes.csv", "scores.jsonl")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_two_hundred_damaged_files_of_each_kind_are_read_or_refused(tmp_path, name):
    rng = random.Random(f"{name} more")
    assert 0 < sum(one(name, rng, tmp_path) for _ in range(200)) < 200
