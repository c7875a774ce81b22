"""Tables with rows that stand twice, and with qualities in words."""

import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.reading.cells import Form
from hydra_core.evalsets.importers.table import read_table

HEADER = "query_id,text,language,model,quality,cost_usd\n"
A, B = "a,Fix,en,cheap,1,0.1\n", "b,Test,en,cheap,0,0.2\n"


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_equal_rows_count_once_and_are_reported(tmp_path):
    twice = [write(tmp_path, "x.csv", HEADER + A + B + A), write(tmp_path, "y.csv", HEADER + A)]
    draft = read_table(twice)
    assert draft.quality.tolist() == [[1.0], [0.0]]
    assert "dropped 2 x outcome that an earlier row holds too (e.g. a, ...)" in str(draft.report)


def test_rows_of_a_query_without_a_model_s_outcome_are_no_repetition(tmp_path):
    blank = A.replace(",1,", ",,")
    report = read_table([write(tmp_path, "x.csv", HEADER + A + B + blank + blank)]).report
    assert {one.reason: one.count for one in report.dropped if one.count} == {
        "row without a quality": 2
    }


def test_rows_that_disagree_are_named_with_those_before_them(tmp_path):
    files = [
        write(tmp_path, "x.csv", HEADER + A + B + A),
        write(tmp_path, "y.csv", HEADER + A.replace("0.1", "0.3") + B.replace(",0,", ",1,")),
    ]
    with pytest.raises(EvalSetError) as refused:
        read_table(files)
    assert (
        "2 row(s): query and model occur before with other values: "
        "y.csv line 2 (before: x.csv line 2), y.csv line 3 (before: x.csv line 3)"
    ) in str(refused.value)


WORDS = HEADER + (
    "a,Fix,en,cheap,Pass,0.1\nb,Test,en,cheap, FAILED,0.1\nc,Run,en,cheap,resolved,0.1\n"
    "d,Plan,en,cheap,unresolved,0.1\ne,Ask,en,cheap,yes,0.1\nf,See,en,cheap,0.5,0.1\n"
)


def test_words_are_read_as_quality_only_where_that_is_said(tmp_path):
    path = write(tmp_path, "x.csv", WORDS)
    with pytest.raises(EvalSetError, match="words count .--read quality=words"):
        read_table([path])
    draft = read_table([path], form=Form(words=True))
    assert draft.quality[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0, 1.0, 0.5]
    assert any("1 x pass as 1, 1 x failed as 0" in one for one in draft.report.warnings)


def test_words_are_no_costs(tmp_path):
    path = write(tmp_path, "x.csv", WORDS.replace("0.1", "pass"))
    with pytest.raises(EvalSetError, match="column 'cost_usd': 6 of 6 cells are not numbers"):
        read_table([path], form=Form(words=True))


def test_a_remedy_names_the_setting_of_whoever_imports(tmp_path):
    path = write(tmp_path, "x.csv", HEADER + A.replace(",1,", ",83,"))
    with pytest.raises(
        EvalSetError, match="of percentages say that they are .--read quality=percent"
    ):
        read_table([path])
    with pytest.raises(EvalSetError, match="say that they are .the list above"):
        read_table([path], form=Form(to_read="the list above"))
