"""The rows of a table that people wrote: delimiters, Excel's `sep=` line, Markdown."""

import csv
import itertools
import re
from collections.abc import Iterator
from typing import Final, TextIO

#: Characters of a cell, and of the line that the delimiter is read from.
MAX_CELL: Final = 16 << 20
#: What parts the cells of Markdown, where other lines may stand before and behind the table.
MARKDOWN: Final = "|"
_STATED: Final = re.compile(r"\s*sep=(.)\s*", re.IGNORECASE)
_BAR: Final = re.compile(r"(?<!\\)\|")
_RULE: Final = re.compile(r"\s*:?-+:?\s*|\s*")


class BrokenRow(Exception):  # noqa: N818
    """A row that is not CSV, such as a text in quotes that do not end."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def csv_rows(text: TextIO, usual: str = "") -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of every row; one of a `sep=` line or a Markdown rule has no cells.

    Args:
        text: Opened with newline="" or as one string.
        usual: The delimiter where no `sep=` line names one, such as MARKDOWN; else the first
            line's own.

    Raises:
        BrokenRow: Quotes that do not end where a cell does, or a cell beyond all bounds.
    """
    csv.field_size_limit(MAX_CELL)
    line, first = 1, text.readline(MAX_CELL)
    delimiter = ""
    prose = usual == MARKDOWN
    while (
        (stated := _STATED.fullmatch(first)) is not None
        or first.isspace()
        or (prose and first and MARKDOWN not in first)
    ):
        delimiter = delimiter if stated is None else stated[1]
        yield line, []
        line, first = line + 1, text.readline(MAX_CELL)
    before = line  # the reader counts from the line that it reads first
    bordered = first.strip().startswith("|") and first.strip().endswith("|")
    if not delimiter:
        delimiter = usual or max(",;\t", key=first.count)
        delimiter = "|" if bordered or (delimiter not in first and "|" in first) else delimiter
    reader = csv.reader(
        itertools.chain([first], text) if first else iter(()), delimiter=delimiter, strict=True
    )
    try:
        for row in reader:
            cells = row if delimiter != MARKDOWN else _of_markdown(row, bordered)
            yield line, [] if prose and len(row) < 2 else cells
            line = before + reader.line_num
    except csv.Error as error:
        raise BrokenRow(line, str(error)) from error


def _of_markdown(row: list[str], bordered: bool) -> list[str]:
    """The cells between `|`, without spaces and borders; none of the rule under the heading."""
    if all(map(_RULE.fullmatch, row)):
        return []
    cells = [cell.strip().replace(r"\|", "|") for cell in _BAR.split("|".join(row))]
    return cells[1:-1] if bordered and cells[0] == cells[-1] == "" else cells
