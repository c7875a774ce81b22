"""Rows of tables that people wrote."""

import io

import pytest

from hydra_core.base.reading.csv_rows import MARKDOWN, BrokenRow, csv_rows

TABLE = [["model", "input"], ["a", "1"], ["b", "2,5"]]


def rows(text, usual=""):
    """The rows with cells."""
    return [cells for _, cells in csv_rows(io.StringIO(text), usual) if cells]


@pytest.mark.parametrize(
    "text",
    [
        'model,input\na,1\nb,"2,5"\n',
        "model;input\na;1\nb;2,5",
        "model\tinput\na\t1\nb\t2,5\n",
        "\n\nmodel;input\na;1\n\nb;2,5\n",
        "sep=;\nmodel;input\na;1\nb;2,5\n",
        "sep=|\nmodel|input\na|1\nb|2,5\n",
        "| model | input |\n|:------|------:|\n| a     | 1     |\n| b     | 2,5   |\n",
        "model | input\n--- | ---\na | 1\nb | 2,5\n",
    ],
)
def test_every_form_gives_the_same_rows(text):
    assert rows(text) == TABLE


def test_an_empty_cell_of_markdown_at_a_border_stays():
    assert rows("| a | b |\n|---|---|\n|  | 2 |\n| 1 |  |\n") == [["a", "b"], ["", "2"], ["1", ""]]


def test_markdown_keeps_commas_of_its_heading_and_bars_in_its_cells():
    text = "| query, id | cost |\n|---|---|\n| a \\| b | 2,5 |\n"
    assert rows(text) == [["query, id", "cost"], ["a | b", "2,5"]]


def test_other_lines_of_a_markdown_file_are_no_rows():
    text = "# Prices, of May\n\nIn USD.\n\n| model | input |\n|---|---|\n| a | 1 |\n\nThe end.\n"
    found = list(csv_rows(io.StringIO(text), MARKDOWN))
    assert [(line, cells) for line, cells in found if cells] == [(5, TABLE[0]), (7, TABLE[1])]


def test_a_stated_delimiter_goes_before_what_the_header_looks_like():
    assert rows("sep=;\na,b\n1,2\n") == [["a,b"], ["1,2"]]


def test_a_row_is_named_by_its_first_line():
    text = 'a,b\n"two\nlines",1\nx,2\n'
    assert [line for line, _ in csv_rows(io.StringIO(text))] == [1, 2, 4]
    with pytest.raises(BrokenRow) as caught:
        list(csv_rows(io.StringIO('a,b\n1,2\n"never ends,3\n')))
    assert caught.value.line == 3


def test_nothing_has_no_rows():
    assert rows("") == rows(" \n") == []
