"""CSV for people: a spreadsheet runs nothing in it, and nothing else is changed."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hydra_core
from hydra_core.export.downloads import csv_file, latex_file, parquet_file


@pytest.mark.parametrize(
    "text",
    [
        '=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(1)", "\t1", "\r=1", "\n=1", "＝1", "＠x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_text_that_begins_like_a_formula_gets_an_apostrophe(text, kind):
    frame = pd.DataFrame({"text": pd.Series([text, "a=1, b-2"]).astype(kind)})
    rows = csv.reader(io.StringIO(csv_file(frame).decode("utf-8-sig"), newline=""))
    assert list(rows) == [["text"], [f"'{text}"], ["a=1, b-2"]]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("x;=1+1", "x;'=1+1"), ("x\t@SUM(1)", "x\t'@SUM(1)"), ("a;-b;c", "a;'-b;c"),
        ("=1;=2", "'=1;'=2"), ("\t=1", "'\t'=1"), ("a; b=1", "a; b=1"),
    ],
)  # fmt: skip
def test_where_another_cell_may_begin_a_formula_is_guarded_as_well(text, safe):
    rows = csv.reader(io.StringIO(csv_file(pd.DataFrame({"t": [text]})).decode("utf-8-sig")))
    assert list(rows)[1] == [safe]


def test_numbers_and_everything_else_stay_as_they_are():
    frame = pd.DataFrame(
        {
            "change": [-0.5, np.nan],
            "count": [-3, 4],
            "mixed": pd.Series([-1.5, "-1.5"], dtype=object),
            "flag": [True, False],
            "none": [None, "a ‚=‘"],
            "day": pd.to_datetime(["2026-01-01", "2026-01-02"]),
        }
    )
    assert csv_file(frame).decode("utf-8-sig").splitlines() == [
        "change,count,mixed,flag,none,day",
        "-0.5,-3,-1.5,True,,2026-01-01",
        ",4,'-1.5,False,a ‚=‘,2026-01-02",
    ]
    assert frame["mixed"].tolist() == [-1.5, "-1.5"]


def test_headings_are_text_too_and_may_be_alike():
    frame = pd.DataFrame([["=1", -1]], columns=["=cmd", "=cmd"])
    assert csv_file(frame).decode("utf-8-sig") == "'=cmd,'=cmd\r\n'=1,-1\r\n"


def test_a_text_cannot_begin_a_row_of_its_own():
    data = csv_file(pd.DataFrame({"text": ["harmless\r=1", "harmless\n=1"]}))
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert rows == [["text"], ["harmless\r=1"], ["harmless\n=1"]]


def test_spreadsheets_see_utf_8():
    assert csv_file(pd.DataFrame({"text": ["Grüße"]})).startswith(b"\xef\xbb\xbf")


def test_no_other_place_of_the_console_writes_csv():
    root = Path(hydra_core.__file__).parents[1]
    folders = ("hydra_core/console", "hydra_core/export", "pages")
    code = [path for folder in folders for path in (root / folder).rglob("*.py")]
    assert [path.name for path in code if ".to_csv(" in path.read_text()] == ["downloads.py"]


def test_parquet_keeps_numbers_and_texts_as_they_are():
    frame = pd.DataFrame(
        {"n": [1, 2], "qr": [0.5, np.nan], "text": ["=1", None], "mixed": [1, "a"]}
    )
    back = pd.read_parquet(io.BytesIO(parquet_file(frame)))
    assert back["n"].tolist() == [1, 2]
    assert back["qr"].isna().tolist() == [False, True]
    assert (back["text"][0], back["text"].isna().tolist()) == ("=1", [False, True])
    assert back["mixed"].tolist() == ["1", "a"]


def test_latex_is_escaped_and_says_what_is_missing():
    told = latex_file(pd.DataFrame({"a_b": ["50 % & \\x\n{$}"], "qr": [np.nan]})).decode()
    assert told.splitlines()[2] == r"a\_b & qr \\"
    assert told.splitlines()[4] == r"50 \% \& \textbackslash{}x \{\$\} & -- \\"


@pytest.mark.parametrize("first", ["[1cm]", "*", " [x"])
def test_a_latex_row_cannot_be_an_option_of_the_row_before(first):
    lines = latex_file(pd.DataFrame({"[name]": [first, "b"]})).decode().splitlines()
    assert not [line for line in lines if line.lstrip().startswith(("[", "*"))]
