"""Opening tables that may be compressed, with a bound on what they inflate to."""

import codecs
import gzip
import io
import lzma
import shlex
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

from hydra_core.base.errors import EvalSetError
from hydra_core.base.reading.csv_rows import MARKDOWN
from hydra_core.base.types import Progress

#: Data one import may read, over all its files and after decompression.
MAX_BYTES = 400 << 20
#: Kinds of files that `csv_rows` reads, with what parts their cells where no line says it.
TABLES: Final = {"csv": "", "tsv": "\t", "md": MARKDOWN}
#: Rows one import may read, over all its files.
MAX_ROWS = 2_000_000

#: Bytes by which a file is known as UTF-16.
_HEAD: Final = 256

#: What gzip and zipfile raise on bytes that are not what they should be (RuntimeError: password).
_DAMAGED = (
    *(EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, struct.error),
    *(ValueError, OverflowError, RuntimeError, IndexError, KeyError),
)
_REMEDY = "drop columns that are not needed, or split the queries over several eval sets"


#: A file on disk, or an uploaded one: seekable bytes with a name.
TableFile: TypeAlias = Path | BinaryIO

_WATCHING: ContextVar[tuple[Progress, int] | None] = ContextVar("watching", default=None)


@contextmanager
def watched(step: Progress, files: Sequence[TableFile]) -> Iterator[None]:
    """Have `step` called as these files are read; what it raises ends the reading.

    Args:
        step: Told the bytes so far and in all, 0 where files are packed and nobody knows.
    """
    packed = any(file.name.lower().endswith((".gz", ".zip", ".eval", ".parquet")) for file in files)
    token = _WATCHING.set((step, 0 if packed else size_of(files)))
    try:
        yield
    finally:
        _WATCHING.reset(token)


def stop_where_asked() -> None:
    """Let whoever watches end an import that goes on after its files are read."""
    watching = _WATCHING.get()
    if watching is not None:
        step, total = watching
        step(total, total)


class Budget:
    """What is left of an import's bytes and rows; taking too much raises EvalSetError."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS) -> None:
        self.max_bytes, self.max_rows = max_bytes, max_rows
        self.bytes_left, self.rows_left = max_bytes, max_rows

    def take_bytes(self, count: int, source: str) -> None:
        self.bytes_left -= count
        watching = _WATCHING.get()
        if watching is not None:
            step, total = watching
            read = self.max_bytes - self.bytes_left
            step(min(read, total) if total else read, total)
        if self.bytes_left < 0:
            raise self.too_large(source)

    def take_rows(self, count: int, source: str) -> None:
        self.rows_left -= count
        if self.rows_left < 0:
            message = f"the import has more than {self.max_rows:,} rows, the limit"
            raise EvalSetError.of(source, message, "split the queries over several sets")

    def too_large(self, source: str) -> EvalSetError:
        """The error for more data than the limit."""
        message = f"the import holds more than {self.max_bytes >> 20} MiB of data, the limit"
        return EvalSetError.of(source, message, _REMEDY)

    def check_sizes(self, files: list[TableFile]) -> None:
        """Refuse plain files that are over the limit before any of them is read."""
        total = 0
        for file in files:
            if Path(file.name).suffix.lower() in (".csv", ".tsv", ".md", ".jsonl", ".ndjson"):
                total += _size(file)
                if total > self.max_bytes:
                    raise self.too_large(file.name)


def suffix_of(file: TableFile) -> str:
    """What a file's name ends with, `.csv` of `rows.csv.gz`."""
    return Path(file.name.lower().removesuffix(".gz").removesuffix(".zip")).suffix


def size_of(files: Sequence[TableFile]) -> int:
    return sum(map(_size, files))


def _size(file: TableFile) -> int:
    if isinstance(file, Path):
        try:
            return file.stat().st_size
        except OSError:
            return 0  # opening it says why
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


class _Metered(io.RawIOBase):
    """Bytes of a stream, counted against a budget; remembers the last byte."""

    def __init__(self, inner: BinaryIO, budget: Budget, source: str) -> None:
        self._inner, self._budget, self._source = inner, budget, source
        self.last = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            piece = self._inner.read(min(len(buffer), 1 << 20))
        except _DAMAGED as error:
            raise _cut_off(self._source, error) from error
        self._budget.take_bytes(len(piece), self._source)
        if piece:
            self.last = piece[-2:].replace(b"\0", b"")[-1:]  # UTF-16 writes two bytes
        buffer[: len(piece)] = piece
        return len(piece)


def tail_of(text: io.TextIOWrapper) -> bytes:
    """The last byte read so far through a text stream of `open_plain`."""
    buffered = cast(io.BufferedReader, text.buffer)
    return cast(_Metered, buffered.raw).last


@contextmanager
def open_plain(
    file: TableFile, budget: Budget
) -> Iterator[tuple[str, BinaryIO | io.TextIOWrapper]]:
    """Open a file: (kind, stream) with kind csv, tsv, md, jsonl, json (text: UTF-8, or UTF-16 with
    a byte order mark) or parquet (bytes).

    `.gz` and `.zip` (one file inside) are opened on the fly, never to disk.

    Raises:
        EvalSetError: Unknown suffix, unreadable, damaged, no such text, or over the budget.
    """
    source = file.name
    try:
        with bytes_of(file) as raw, _inflated(raw, source) as (name, stream):
            kind = _kind(name, source)
            if kind == "parquet":
                if stream is not raw:
                    raise EvalSetError.of(
                        source, "is a compressed Parquet file", "give it as .parquet"
                    )
                yield kind, raw
                return
            metered = io.BufferedReader(_Metered(stream, budget, source), 1 << 16)
            marked = metered.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            encoding = "utf-16" if marked else "utf-8-sig"
            if not marked:
                _require_no_utf16(metered.peek(_HEAD)[:_HEAD], source)
            with io.TextIOWrapper(metered, encoding=encoding, newline="") as text:
                yield kind, text
    except UnicodeDecodeError as error:
        message = f"is not {error.encoding.upper()} text (byte {error.object[error.start]:#04x})"
        place = f"line {_first_other(file)}" if error.encoding == "utf-8" else ""
        raise EvalSetError.of(source, message, "save it as UTF-8", place=place) from error
    except UnicodeError as error:  # UTF-16 that is cut off
        raise EvalSetError.of(source, f"is no text: {error}", "save it as UTF-8") from error
    except OSError as error:
        raise EvalSetError.of(source, f"cannot be read: {error}", "check the file") from error


def _require_no_utf16(head: bytes, source: str) -> None:
    """Refuse UTF-16 that has no byte order mark: every other byte of plain letters is 0."""
    zeros = [head[start::2].count(0) for start in (0, 1)]
    if max(zeros) < max(1, len(head) // 4):
        return
    order = "UTF-16BE" if zeros[0] > zeros[1] else "UTF-16LE"
    remedy = (
        f"save it as UTF-8, such as by iconv -f {order} -t UTF-8 {shlex.quote(source)} > NEW, "
        "or with a byte order mark"
    )
    raise EvalSetError.of(source, f"is {order} text without a byte order mark", remedy)


def _first_other(file: TableFile) -> int:
    """The first line that is not UTF-8, of a file that has one."""
    with bytes_of(file) as raw, _inflated(raw, file.name) as (_, stream):
        lines = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape")
        number = next((n for n, line in enumerate(lines, 1) if not _is_utf8(line)), 0)
        lines.detach()
    return number


def _is_utf8(line: str) -> bool:
    return line.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in line)


def _cut_off(source: str, error: Exception) -> EvalSetError:
    return EvalSetError.of(source, f"is damaged or cut off: {error}", "get the file again")


@contextmanager
def bytes_of(file: TableFile) -> Iterator[BinaryIO]:
    if isinstance(file, Path):
        with file.open("rb") as stream:
            yield stream
    else:
        file.seek(0)
        yield file


@contextmanager
def _inflated(raw: BinaryIO, source: str) -> Iterator[tuple[str, BinaryIO]]:
    """(name without the compression suffix, stream of the inflated bytes)."""
    path = Path(source)
    if path.suffix.lower() == ".gz":
        with gzip.GzipFile(fileobj=raw) as stream:
            yield path.stem, cast(BinaryIO, stream)
    elif path.suffix.lower() == ".zip":
        name, member = _only_member(raw, source)
        with member:
            yield name, member
    else:
        yield path.name, raw


def _only_member(raw: BinaryIO, source: str) -> tuple[str, BinaryIO]:
    try:
        archive = zipfile.ZipFile(raw)
        inside = [m for m in archive.namelist() if not m.endswith("/") and "__MACOSX" not in m]
        if len(inside) == 1:
            return inside[0], cast(BinaryIO, archive.open(inside[0]))
    except _DAMAGED as error:
        raise _cut_off(source, error) from error
    remedy = "zip exactly one table, or give them unzipped"
    raise EvalSetError.of(source, f"holds {len(inside)} files", remedy)


def _kind(name: str, source: str) -> str:
    ending = Path(name).suffix.lower()
    kind = "jsonl" if ending == ".ndjson" else ending[1:]
    if kind not in (*TABLES, "jsonl", "json", "parquet"):
        formats = ".csv, .tsv, .json, .jsonl, .md or .parquet"
        remedy = f"save it as {formats} (text formats also as .gz or .zip)"
        raise EvalSetError.of(
            source, f"has the suffix {Path(name).suffix!r}, which is not read", remedy
        )
    return kind
