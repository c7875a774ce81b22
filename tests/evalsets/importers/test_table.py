"""Import of tables: any form gives the same set; whatever is wrong is said, all at once."""

import gzip
import io
import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import CancelledError, EvalSetError
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.assemble import MISSING_TEXTS, NO_TEXTS
from hydra_core.evalsets.importers.draft import About, write_draft
from hydra_core.evalsets.importers.mapping import TableMapping, parse_map, suggest_mapping
from hydra_core.evalsets.importers.reading.bounded import MAX_BYTES, MAX_ROWS, Budget, watched
from hydra_core.evalsets.importers.reading.cells import Form
from hydra_core.evalsets.importers.reading.notation import parse_notations
from hydra_core.evalsets.importers.reading.tables import columns_of
from hydra_core.evalsets.importers.table import model_names, read_table

HEADER = "query_id,text,language,model,quality,cost_usd\n"
GOOD = HEADER + (
    'a,"Fix, it",en,cheap,1,0.01\n'
    'a,"Fix, it",en,strong,0.5,0.2\n'
    'b,"Two\nlines",de,cheap,true,0.02\n'
    "b,,,strong,0,3e-1\n"
)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def assert_is_good(draft):
    assert list(draft.queries["query_id"]) == ["a", "b"]
    assert list(draft.queries["text"]) == ["Fix, it", "Two\nlines"]
    assert list(draft.queries["language"]) == ["en", "de"]
    assert draft.models == ("cheap", "strong")
    np.testing.assert_array_equal(draft.quality, [[1, 0.5], [1, 0]])
    np.testing.assert_array_equal(draft.cost_usd, [[0.01, 0.2], [0.02, 0.3]])


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


FORMS = {
    "plain.csv": GOOD,
    "bom.csv": b"\xef\xbb\xbf" + GOOD.encode(),
    "windows.csv": GOOD.replace("\n", "\r\n").replace("Two\r\nlines", "Two\nlines"),
    "semicolon.csv": 'query_id;text;language;model;quality;cost_usd\na;"Fix, it";en;cheap;1;0.01\n'
    'a;"Fix, it";en;strong;0.5;0.2\nb;"Two\nlines";de;cheap;true;0.02\nb;;;strong;0;3e-1\n',
    "utf16.csv": GOOD.encode("utf-16"),
    "old_mac.csv": GOOD.replace("\n", "\r").replace("Two\rlines", "Two\nlines"),
    "excel.csv": "sep=,\r\n" + GOOD,
    "packed.csv.gz": gzip.compress(GOOD.encode()),
    "packed.zip": zipped("inner.csv", GOOD),
    "rows.jsonl": "\n".join(
        json.dumps(row)
        for row in [
            {"query_id": "a", "text": "Fix, it", "language": "en", "model": "cheap", "quality": 1,
             "cost_usd": 0.01},
            {"query_id": "a", "model": "strong", "quality": 0.5, "cost_usd": 0.2},
            {"query_id": "b", "text": "Two\nlines", "language": "de-AT", "model": "cheap",
             "quality": True, "cost_usd": 0.02},
            {"query_id": "b", "text": None, "model": "strong", "quality": 0.0, "cost_usd": 0.3},
        ]
    ) + "\n",
}  # fmt: skip


def test_a_table_in_a_markdown_file_is_read(tmp_path):
    cells = [line.split(",") for line in (HEADER + row("a") + row("b")).splitlines()]
    lines = [f"| {' | '.join(line)} |" for line in cells]
    lines.insert(1, "|---" * len(cells[0]) + "|")
    draft = read_table([write(tmp_path, "x.md", "\n".join(lines) + "\n")])
    assert list(draft.queries["query_id"]) == ["a", "b"]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_file_gives_the_same_set(tmp_path, name):
    assert_is_good(read_table([write(tmp_path, name, FORMS[name])]))


def test_parquet_gives_the_same_set(tmp_path):
    frame = pd.DataFrame(
        {
            "query_id": ["a", "a", "b", "b"],
            "text": ["Fix, it", "Fix, it", "Two\nlines", None],
            "language": ["en", "en", "de", "de"],
            "model": ["cheap", "strong", "cheap", "strong"],
            "quality": [1.0, 0.5, 1.0, 0.0],
            "cost_usd": [0.01, 0.2, 0.02, 0.3],
        }
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    assert_is_good(read_table([tmp_path / "rows.parquet"]))


def test_texts_and_outcomes_may_lie_in_different_files(tmp_path):
    texts = write(tmp_path, "t.csv", 'query_id,text,language\na,"Fix, it",en\nb,"Two\nlines",de\n')
    outcomes = write(
        tmp_path,
        "o.csv",
        "query_id,model,quality,cost_usd\nb,cheap,1,0.02\nb,strong,0,0.3\n"
        "a,strong,0.5,0.2\na,cheap,1,0.01\n",
    )
    assert_is_good(read_table([outcomes, texts]))


def test_an_uploaded_stream_is_read_like_a_file():
    stream = io.BytesIO(GOOD.encode())
    stream.name = "upload.csv"
    assert_is_good(read_table([stream]))


def import_table(files, out):
    draft = read_table(files)
    write_draft(draft, out, About(origin=", ".join(file.name for file in files)))
    return draft.report


def test_an_import_writes_a_sound_folder(tmp_path):
    report = import_table([write(tmp_path, "good.csv", GOOD)], tmp_path / "set")
    found = load_evalset(tmp_path / "set")
    assert (report.kept, report.outcomes, report.missing) == (2, 4, {})
    assert (found.name, found.origin) == ("set", "good.csv")


ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zs")), min_size=1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1).filter(
    lambda text: text.strip() and text.strip().lower() not in MISSING_TEXTS
)
qualities = st.none() | st.floats(0, 1)
costs = st.none() | st.floats(0, 1e6)


@st.composite
def outcome_tables(draw):
    """query -> (text, {model: (quality, cost)})"""
    models = draw(st.lists(st.sampled_from(["m1", "m/2", "m:3"]), min_size=1, unique=True))
    names = draw(st.lists(ids.filter(str.strip), min_size=1, max_size=5, unique=True))
    return {
        name: (draw(texts), {model: (draw(qualities), draw(costs)) for model in models})
        for name in names
    }


def long_frame(table):
    return pd.DataFrame(
        [
            {"query_id": q, "text": text, "language": "en", "model": m, "quality": x, "cost_usd": c}
            for q, (text, outcomes) in table.items()
            for m, (x, c) in outcomes.items()
        ]
    ).astype({"quality": float, "cost_usd": float})


def wide_frame(table):
    return pd.DataFrame(
        [
            {
                "query_id": q,
                "text": text,
                "language": "en",
                **{f"quality:{m}": x for m, (x, _) in outcomes.items()},
                **{f"cost:{m}": c for m, (_, c) in outcomes.items()},
            }
            for q, (text, outcomes) in table.items()
        ]
    )


def same(one, other):
    assert one.models == other.models
    pd.testing.assert_frame_equal(one.queries, other.queries)
    np.testing.assert_array_equal(one.quality, other.quality)
    np.testing.assert_array_equal(one.cost_usd, other.cost_usd)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(table=outcome_tables(), seed=st.integers(0, 100))
def test_long_and_wide_and_any_order_of_rows_give_the_same_set(tmp_path, table, seed):
    long, wide = long_frame(table), wide_frame(table)
    long.to_csv(tmp_path / "long.csv", index=False)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    mixed = long.sample(frac=1, random_state=seed)
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    lines = [json.dumps(row) + "\n" for row in mixed.to_dict("records")]  # with NaN, as Python does
    (tmp_path / "mixed.jsonl").write_text("".join(lines))
    if long["quality"].isna().all():
        for name in ("long.csv", "wide.csv", "mixed.csv", "mixed.jsonl"):
            with pytest.raises(EvalSetError, match="no rows are left"):
                read_table([tmp_path / name])
        return
    first = read_table([tmp_path / "long.csv"])
    for name in ("wide.csv", "mixed.csv", "mixed.jsonl"):
        same(first, read_table([tmp_path / name]))
    known = long.dropna(subset="quality").set_index(["query_id", "model"])
    for i, query in enumerate(first.queries["query_id"]):
        for j, model in enumerate(first.models):
            if (query, model) in known.index:
                assert first.quality[i, j] == known.loc[(query, model), "quality"]
            else:
                assert np.isnan(first.quality[i, j])


def row(query="a", text="Fix", model="other", quality="1", cost="0.1"):
    return f"{query},{text},en,{model},{quality},{cost}\n"


BROKEN = {
    "missing column": (GOOD.replace("quality", "grade"), "quality: the column is missing"),
    "duplicate": (
        GOOD + 'a,"Fix, it",en,cheap,0,0.01\n',
        "occur before with other values: x.csv line 7 (before: x.csv line 2)",
    ),
    "negative cost": (
        GOOD + row("c", cost="-5"),
        "column 'cost_usd': 1 of 5 cells are not >= 0, first in x.csv line 7 ('-5')",
    ),
    "infinite cost": (GOOD + row("c", cost="1e999"), "line 7 ('1e999')"),
    "quality 1.7": (
        GOOD + row("c", quality="1.7"),
        "1 of 5 cells are not from 0 to 1, first in x.csv line 7 ('1.7') (quality is a share",
    ),
    "comma number": (GOOD + row("c", quality='"0,5"'), "('0,5') (write 0.5, not 0,5"),
    "text number": (
        GOOD + row("c", cost="free"),
        "1 of 5 cells are not numbers, first in x.csv line 7 ('free')",
    ),
    "html model": (GOOD + row("c", model="<img src=x>"), "'<img src=x>' contains"),
    "other text": (GOOD + row("a", text="Break"), "text differs from an earlier row's"),
    "no id": (GOOD + row(" "), "query_id is empty"),
    "language": (GOOD + row("c").replace(",en,", ",English,"), "language is not a code"),
    "cut in quotes": (GOOD[: GOOD.index("lines")], "cut off inside a quoted text"),
    "cut row": (GOOD[:-8], "cells instead of 6"),
    "no rows": (HEADER, "has no rows"),
    "empty": ("", "is empty"),
    "not utf-8": (GOOD.replace("Fix", "Füx").encode("latin-1"), "line 2: is not UTF-8"),
    "merged headings": (
        ",,gpt-5,,haiku,\nid,question,score,cost,score,cost\nq,What?,1,0.1,0,0.01\n",
        "line 1: are two rows of headings (write one row of headings, such as 'haiku score', and "
        "delete line 1)",
    ),
    "headings in two rows": (
        "id,question,gpt-5,,haiku,\n,,score,cost,score,cost\nq,What?,1,0.1,0,0.01\n",
        "line 1: are two rows of headings",
    ),
    "headings of measures above models": (
        "id,question,score,,cost,\n,,gpt-5,haiku-4,gpt-5,haiku-4\nq,What?,1,0,0.1,0.01\n",
        "line 1: are two rows of headings (write one row of headings, such as 'cost gpt-5', and "
        "delete line 1)",
    ),
    "too large": (
        GOOD + row("c", cost="1e400"),
        "1 of 5 cells are too large for a number, first in x.csv line 7 ('1e400')",
    ),
    "too large quality": (GOOD + row("c", quality="1e400"), "cells are too large for a number"),
    "unmarked utf-16": (
        GOOD.encode("utf-16-le"),
        "is UTF-16LE text without a byte order mark (save it as UTF-8, such as by iconv -f "
        "UTF-16LE -t UTF-8 x.csv > NEW",
    ),
    "unmarked utf-16, the other way": (GOOD.encode("utf-16-be"), "is UTF-16BE text without"),
    "cut utf-16": (GOOD.encode("utf-16")[:-1], "not UTF-16"),
    "twice": (GOOD.replace("language,", "text,"), "column 'text': occurs twice"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_said_and_nothing_is_written(tmp_path, case):
    content, message = BROKEN[case]
    source = write(tmp_path, "x.csv", content)
    with pytest.raises(EvalSetError) as caught:
        import_table([source], tmp_path / "set")
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_the_remedy_for_two_rows_of_headings_works(tmp_path):
    headings = "id,question,score gpt-5,score haiku-4,cost gpt-5,cost haiku-4"
    draft = read_table([write(tmp_path, "x.csv", f"{headings}\nq,What?,1,0,0.1,0.01\n")])
    assert draft.models == ("gpt-5", "haiku-4")
    assert draft.quality.tolist() == [[1, 0]]
    assert draft.cost_usd.tolist() == [[0.1, 0.01]]


def test_words_that_repeat_in_a_row_below_empty_headings_are_no_headings(tmp_path):
    table = "id,question,gpt-5,haiku,,\nq1,What?,yes,yes,note,note\nq2,Why?,no,yes,note,note\n"
    columns = columns_of(write(tmp_path, "x.csv", table))
    assert columns == ["id", "question", "gpt-5", "haiku", "", ""]


def test_all_problems_are_reported_with_counts_and_first_lines(tmp_path):
    rows = "".join(row(f"q{i}", quality="7") for i in range(20)) + row("z", cost="-1", model="<b>")
    with pytest.raises(EvalSetError) as caught:
        read_table([write(tmp_path, "x.csv", HEADER + rows)])
    text = str(caught.value)
    assert (
        "column 'quality': 20 of 21 cells are not from 0 to 1, first in x.csv line 2 ('7')" in text
    )
    assert "column 'cost_usd': 1 of 21 cells are not >= 0" in text
    assert "contains less-than sign" in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", '{"query_id": "a"}\n[1]\n{"que', "2 rows (lines 2, 3): is not a JSON object"),
        ("x.jsonl", '{"query_id": ["a"], "text": "x", "model": "m", "quality": 1, "cost": 1}\n',
         "holds a list"),
        ("x.jsonl", '{"query_id": "a", "text": "\\ud800", "model": "m", "quality": 1, "cost": 1}\n',
         "half a character"),
        ("x.jsonl", "[" * 100_000 + "\n", "is not valid JSON"),
        ("x.parquet", b"PAR1 and no more", "is not a whole Parquet file"),
        ("x.csv.gz", gzip.compress(GOOD.encode())[:-12], "damaged or cut off"),
        ("x.zip", b"PK\x03\x04 and no more", "damaged or cut off"),
        ("x.zip", zipped("a/b.txt", "x"), "suffix '.txt'"),
        ("x.xlsx", b"PK", "suffix '.xlsx'"),
        ("x.json", "[]", "is empty"),
        ("x.json", "{}", "is JSON, but no list of objects"),
        ("x.json", "[1]", "is JSON, but no list of objects"),
        ("x.json", "[", "is not valid JSON"),
    ],
)  # fmt: skip
def test_other_damaged_files_are_named_too(tmp_path, name, content, message):
    with pytest.raises(EvalSetError) as caught:
        read_table([write(tmp_path, name, content)])
    assert message in str(caught.value)


def test_a_plain_file_over_the_limit_is_refused_before_it_is_read(tmp_path):
    path = write(tmp_path, "x.csv", GOOD)
    with path.open("r+b") as stream:
        stream.truncate(500_000_000)  # sparse: no disk, no time
    with pytest.raises(EvalSetError, match="more than 400 MiB of data, the limit"):
        read_table([path])


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.zip"])
def test_a_bomb_is_stopped_at_the_limit(tmp_path, monkeypatch, name):
    limits = (MAX_BYTES // 50, MAX_ROWS)
    monkeypatch.setattr(Budget.__init__, "__defaults__", limits)
    path = tmp_path / name
    piece = (row("q", text="0" * 1000) * 1000).encode()
    count = limits[0] // len(piece) + 2
    if name.endswith("gz"):
        with gzip.open(path, "wb", compresslevel=1) as stream:
            stream.writelines([HEADER.encode(), *[b"0" * len(piece)] * count])
    else:
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open("inner.csv", "w", force_zip64=True) as stream,
        ):
            stream.writelines([HEADER.encode(), *[b"0" * len(piece)] * count])
    assert path.stat().st_size < limits[0] / 150
    with pytest.raises(EvalSetError, match="more than 8 MiB of data, the limit"):
        read_table([path])


def test_rows_without_outcome_and_queries_without_text_are_counted(tmp_path):
    content = GOOD + row("c", quality="") + row("d", text="") + "e,Lonely,en,cheap,,\n"
    report = read_table([write(tmp_path, "x.csv", content)]).report
    dropped = {entry.reason: entry.count for entry in report.dropped}
    assert dropped == {
        "row without a quality": 2,
        "query without text": 1,
        "query without an outcome": 2,
    }
    assert "2 x row without a quality (e.g. c, e)" in str(report)


def test_gaps_are_shown_per_model_and_not_filled(tmp_path):
    content = GOOD + row("c", model="cheap", cost="")
    draft = read_table([write(tmp_path, "x.csv", content)])
    assert draft.report.missing == {"cheap": (0, 1), "strong": (1, 1)}
    assert np.isnan(draft.quality[2, 1])


def test_languages_are_guessed_only_where_they_are_missing(tmp_path):
    content = (
        "query_id,text,language,model,quality,cost_usd\n"
        "a,Hello there my good friend,,m,1,1\nb,Привет мой друг,,m,1,1\nc,Hallo,nl,m,1,1\n"
    )
    draft = read_table([write(tmp_path, "x.csv", content)])
    assert list(draft.queries["language"]) == ["en", "ru", "nl"]
    assert any("2 queries was guessed" in text for text in draft.report.warnings)


def test_a_file_without_a_last_line_break_is_mentioned(tmp_path):
    draft = read_table([write(tmp_path, "x.csv", GOOD.rstrip("\n"))])
    assert any("cut off" in text for text in draft.report.warnings)


def test_percentages_need_a_word(tmp_path):
    path = write(tmp_path, "x.csv", HEADER + row("a", quality="75"))
    with pytest.raises(EvalSetError, match="--read quality=percent"):
        read_table([path])
    assert read_table([path], form=Form(scale=100.0)).quality[0, 0] == 0.75


EUROPEAN = HEADER.replace(",", ";") + "a;Fix;en;cheap;0,5;0,01\na;Fix;en;strong;1;2e-1\n"


def test_a_decimal_comma_that_the_cells_prove_is_read_and_said(tmp_path):
    draft = read_table([write(tmp_path, "x.csv", EUROPEAN)])
    assert draft.quality.tolist() == [[0.5, 1.0]]
    assert draft.cost_usd.tolist() == [[0.01, 0.2]]
    assert "quality was read with a decimal comma, such as 0,5" in draft.report.warnings


def test_a_comma_that_may_be_either_is_refused_and_both_remedies_give_their_number(tmp_path):
    path = write(tmp_path, "x.csv", HEADER + row(cost='"1,234"'))
    with pytest.raises(EvalSetError) as caught:
        read_table([path])
    remedies = re.findall(r"--read (\S+)", str(caught.value))
    costs = [
        read_table([path], notations=parse_notations([one])).cost_usd[0, 0] for one in remedies
    ]
    assert costs == [1.234, 1234.0]


def test_a_point_is_no_decimal_mark_beside_commas(tmp_path):
    path = write(tmp_path, "x.csv", EUROPEAN.replace("0,01", "1.234"))
    with pytest.raises(EvalSetError, match=r"not numbers, first in x.csv line 2 \('1.234'\)"):
        read_table([path], form=Form(","))


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("$5", "use a plain number such as 0.5"),
        ("almost", "or true or false; leave the cell empty"),
    ],
)
def test_the_remedy_fits_what_the_cell_holds(tmp_path, cell, remedy):
    path = write(tmp_path, "x.csv", HEADER + row("a", quality=f'"{cell}"'))
    with pytest.raises(EvalSetError, match=remedy):
        read_table([path])


def test_rows_above_the_headings_are_named(tmp_path):
    path = write(tmp_path, "x.csv", "Results of March,,,,\n,,,,\n" + HEADER + row("a"))
    with pytest.raises(EvalSetError, match="line 1: has 1 of 5 headings: Results of March"):
        read_table([path])


def test_costs_may_be_absent_only_when_said(tmp_path):
    path = write(tmp_path, "x.csv", "query_id,text,language,model,quality\na,Fix,en,m,1\n")
    with pytest.raises(EvalSetError, match="cost_usd: the column is missing"):
        read_table([path])
    draft = read_table([path], need_cost=False)
    assert np.isnan(draft.cost_usd).all()
    assert any("no costs" in text for text in draft.report.warnings)


def test_texts_may_be_absent_only_when_said(tmp_path):
    content = "query_id,language,model,quality,cost_usd\nb,en,m,1,1\na,,m,0,2\n"
    path = write(tmp_path, "x.csv", content)
    with pytest.raises(EvalSetError, match="--map text=COLUMN, or that there are none with"):
        read_table([path])
    draft = read_table([path], need_text=False)
    assert draft.queries.to_dict("list") == {"query_id": ["a", "b"], "language": ["und", "en"]}
    assert draft.quality.ravel().tolist() == [0.0, 1.0]
    assert draft.report.warnings[0] == NO_TEXTS
    blank = write(tmp_path, "y.csv", "query_id,text,language,model,quality,cost_usd\na,,en,m,1,1\n")
    with pytest.raises(EvalSetError, match="1 x query without text"):
        read_table([blank])


@pytest.mark.parametrize(
    ("columns", "fields", "quality", "cost"),
    [
        (["id", "Prompt", "lang", "model", "score", "cost"],
         {"query_id": "id", "text": "Prompt", "language": "lang", "model": "model",
          "quality": "score", "cost_usd": "cost"}, {}, {}),
        (["qid", "question", "quality:a", "cost:a", "b:quality", "b:cost_usd"],
         {"query_id": "qid", "text": "question"},
         {"a": "quality:a", "b": "b:quality"}, {"a": "cost:a", "b": "b:cost_usd"}),
        (["sample_id", "prompt", "gpt-4", "gpt-4|total_cost"],
         {"query_id": "sample_id", "text": "prompt"},
         {"gpt-4": "gpt-4"}, {"gpt-4": "gpt-4|total_cost"}),
        (["id", "text", "gpt-5_resolved", "gpt-5_total_cost", "cost_b.1", "quality_b.1", "x_cost"],
         {"query_id": "id", "text": "text"},
         {"gpt-5": "gpt-5_resolved", "b.1": "quality_b.1"},
         {"gpt-5": "gpt-5_total_cost", "b.1": "cost_b.1"}),
        (["query_id", "text", "label_reasoning"],
         {"query_id": "query_id", "text": "text", "label_reasoning": "label_reasoning"}, {}, {}),
        (["x", "y"], {}, {}, {}),
    ],
)  # fmt: skip
def test_usual_names_suggest_a_mapping(columns, fields, quality, cost):
    stated = {"quality": quality, "cost_usd": cost}
    sides = {name: side for name, side in stated.items() if side}
    assert suggest_mapping(columns) == TableMapping(fields, sides)


def test_what_is_said_wins_over_what_is_suggested(tmp_path):
    content = "id,task,text,gpt_ok,gpt_usd\n1,T1,Fix,1,0.1\n2,T2,Mend,0,0.2\n"
    mapping = parse_map(["query_id=task", "quality:gpt=gpt_ok", "cost:gpt=gpt_usd"])
    draft = read_table([write(tmp_path, "x.csv", content)], mapping)
    assert list(draft.queries["query_id"]) == ["T1", "T2"]
    assert draft.models == ("gpt",)
    assert draft.report.columns == {
        "query_id": "task",
        "text": "text",
        "quality:gpt": "gpt_ok",
        "cost:gpt": "gpt_usd",
    }
    assert draft.report.unread == ("id",)
    assert "not read: 'id'" in str(draft.report)


def test_of_an_object_the_parts_that_were_not_read_are_named(tmp_path):
    usage = {"cost": 0.1, "seed": 7}
    row = {"id": 1, "prompt": "Why?", "model": "m", "score": 1, "usage": usage, "note": "x"}
    draft = read_table([write(tmp_path, "x.jsonl", json.dumps(row))])
    assert draft.report.unread == ("note", "usage.seed")


def test_a_mapping_to_no_column_asks_what_was_meant(tmp_path):
    with pytest.raises(EvalSetError, match="did you mean 'quality'"):
        read_table([write(tmp_path, "x.csv", GOOD)], parse_map(["quality=qualty"]))


@pytest.mark.parametrize("pair", ["query_id", "=x", "query_id=", "speed:gpt=x"])
def test_a_mapping_of_another_form_is_refused(pair):
    with pytest.raises(EvalSetError, match="is not FIELD=COLUMN"):
        parse_map([pair])


def test_html_in_a_wide_header_is_refused(tmp_path):
    content = "query_id,text,quality:<b>x</b>,cost:<b>x</b>\na,Fix,1,1\n"
    with pytest.raises(EvalSetError, match="contains less-than sign"):
        read_table([write(tmp_path, "x.csv", content)])


def test_optional_columns_are_typed(tmp_path):
    content = (
        "query_id,text,language,turn,has_image,group,label_reasoning,model,quality,cost_usd,tokens\n"
        "a,Fix,en,2,true,x,0.4,m,1,0.1,99\nb,Mend,en,,,,,m,1,0.1,\n"
    )
    import_table([write(tmp_path, "x.csv", content)], tmp_path / "set")
    found = load_evalset(tmp_path / "set")
    assert list(found.queries["has_image"]) == [True, False]
    assert found.queries["turn"].tolist()[0] == 2
    assert np.isnan(found.queries["label_reasoning"].tolist()[1])
    assert found.extras["tokens"][0, 0] == 99


LONG_MESSY = "task,prompt,llm,is correct?,usd\n1,Hi,GPT 4o (May),1,0.1\n1,Hi,small,0,0.01\n"


def test_names_that_cannot_be_ids_come_with_a_proposal_and_take_one(tmp_path):
    path = tmp_path / "messy.csv"
    path.write_text(LONG_MESSY)
    mapping = parse_map(["query_id=task", "quality=is correct?"])
    assert model_names([path], mapping) == ("GPT 4o (May)", "small")
    with pytest.raises(EvalSetError, match="such as gpt-4o-may"):
        read_table([path], mapping)
    ids = proposed_ids(model_names([path], mapping))
    assert read_table([path], mapping, ids=ids).models == ("gpt-4o-may", "small")


def test_two_names_never_become_one_id(tmp_path):
    path = tmp_path / "messy.csv"
    path.write_text(LONG_MESSY)
    mapping = parse_map(["query_id=task", "quality=is correct?"])
    with pytest.raises(EvalSetError, match="would be the id of 'GPT 4o \\(May\\)', 'small'"):
        read_table([path], mapping, ids={"GPT 4o (May)": "small"})
    wide = tmp_path / "wide.csv"
    wide.write_text("id,text,quality:A 1,cost:A 1,quality:b,cost:b\n1,Hi,1,0.1,0,0.2\n")
    assert read_table([wide], ids={"A 1": "a-1"}).models == ("a-1", "b")
    with pytest.raises(EvalSetError, match="two models"):
        read_table([wide], ids={"A 1": "b"})


def test_what_looks_dependent_is_said_in_the_import_report():
    from hydra_core.evalsets.importers.draft import dependence_warnings

    texts = ["One thing", "one thing.", "Same text!", "same  text", "another"]
    queries = pd.DataFrame({"query_id": list("abcde"), "language": "en", "text": texts})
    (told,) = dependence_warnings(queries)
    assert "4 queries form 2 groups" in told
    assert "a, b; c, d" in told
    assert "declared as clusters" in told
    assert dependence_warnings(queries.iloc[1:3]) == []


def test_how_far_the_reading_is_can_be_watched_and_stopped(tmp_path):
    row = "q{},{},m,1,0.1\n"
    text = "x" * 100_000
    content = "query_id,text,model,quality,cost_usd\n" + "".join(
        row.format(i, text) for i in range(30)
    )
    path = write(tmp_path, "x.csv", content)
    seen = []
    with watched(lambda done, total: seen.append((done, total)), [path]):
        read_table([path])
    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert len(seen) > 10

    def stop(done, total):
        if done > 1_000_000:
            raise CancelledError("stopped")

    with watched(stop, [path]), pytest.raises(CancelledError):
        import_table([path], tmp_path / "set")
    assert not (tmp_path / "set").exists()
