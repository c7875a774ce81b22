"""What verbs print and read: messages, JSON, tables, progress, spending, standard input."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hydra_core.base.errors import HydraError, ProblemsError
from hydra_core.base.json_values import json_text
from hydra_core.base.spelling import counted, set_usd, signed, usd

if TYPE_CHECKING:
    from hydra_core.base.intervals import Interval
    from hydra_core.lab.labeling.calls import Estimate
    from hydra_core.lab.labeling.ledger import Record
    from hydra_core.lab.labeling.run import Progress
    from hydra_core.live.off_policy import PolicyValue

_STDIN_BYTES = 64 << 20
#: The longest line that is read.
LINE_BYTES = 16 << 20


class CannotRunError(HydraError):
    """The verb cannot be run at all: something it needs is not there."""


def say(text: str) -> None:
    """A message to the operator, on stderr."""
    sys.stderr.write(text.rstrip("\n") + "\n")


def print_json(value: object, *, indent: int | None = 2) -> None:
    """One JSON document on stdout; NaN and infinities become null."""
    print(json_text(value, indent=indent, ascii_only=True))


def show(options: argparse.Namespace, document: object, text: str) -> None:
    """A verb's result on stdout: the document with --json, else the text."""
    if options.json:
        print_json(document)
    else:
        print(text)


def stdin() -> BinaryIO:
    """Standard input as bytes; CannotRunError where it is closed."""
    if sys.stdin is None:
        raise CannotRunError("standard input is closed; pipe something into it")
    return sys.stdin.buffer


def stdin_lines() -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line that is not blank; only the start of one that is too long."""
    stream, number = stdin(), 0
    while raw := stream.readline(LINE_BYTES + 1):
        number += 1
        rest = raw
        while len(rest) > LINE_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(LINE_BYTES + 1)
        if raw.strip():
            yield number, raw


def utf8_stdin() -> str:
    """All of standard input as text; ProblemsError over 64 MiB, or where it is not UTF-8."""
    raw = stdin().read(_STDIN_BYTES + 1)
    if len(raw) > _STDIN_BYTES:
        raise ProblemsError.of("standard input", "holds more than 64 MiB, the limit")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemsError.of(
            "standard input", "is not UTF-8 text", place=f"byte {error.start}"
        ) from error


@contextmanager
def progress_bar(label: str, *, unit: str = " queries") -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, fed with (done, total)."""
    from tqdm import tqdm

    with tqdm(desc=label, unit=unit, file=sys.stderr, mininterval=0.2) as bar:

        def step(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield step


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def percent(share: float, sign: str = "") -> str:
    """A share in percent: 12.3 %; with `sign` "+" always signed; – for NaN, which is no share."""
    return "–" if math.isnan(share) else f"{100 * share:{sign}.1f} %"


def percent_range(interval: Interval, sign: str = "") -> str:
    """A share in percent with the ends of its interval, or why there are none."""
    if math.isnan(interval.value):
        return "–"
    ends = interval.bounds(lambda end: percent(end, sign))
    return f"{percent(interval.value, sign)} [{ends}]"


def value_and_ends(interval: Interval | None) -> list[float] | None:
    """An estimate and its bounds for JSON; None where there is none."""
    return None if interval is None else [interval.value, interval.lo, interval.hi]


def mix_table(kinds: Sequence[str], mixes: Sequence[Mapping[str, float]]) -> str:
    """What share of the traffic each model gets, a column for each kind of traffic."""
    names = dict.fromkeys(name for mix in mixes for name in mix)
    rows = [[name, *(percent(mix.get(name, 0.0)) for mix in mixes)] for name in names]
    return table(["model", *kinds], rows)


def quality_lines(value: PolicyValue) -> list[str]:
    """What a log says of a policy's quality, an estimate a line."""
    return [
        f"quality, {name}: {one.bounds(percent) if one is value.bounds else percent_range(one)}"
        for name, one in value.estimates.items()
    ]


def points(value: float) -> str:
    """A quality from 0 to 1 in points, signed: +1.3, and 0.0 for what rounds to nothing."""
    return signed(100 * value).replace("−", "-")


def points_range(ends: list[float | None]) -> str:
    """The ends of an interval in points; None is shown as unknown."""
    low, high = ("?" if end is None else points(end) for end in ends)
    return f"[{low}, {high}]"


def lift_table(over: str, lift: Mapping[str, Any]) -> str:
    """The lift at each point of the cost range and its mean, `over` what it is measured."""
    rows = [
        [f"{point} % of the cost range", points(lift["points"][point]), points_range(ends)]
        for point, ends in lift["simultaneous"].items()
    ]
    rows.append(["mean of the three", points(lift["mean"]), points_range(lift["interval"])])
    return table([over, "points", "95 % interval"], rows)


def say_taken(taken: int, left: Mapping[str, int], path: Path) -> None:
    """Print how many answers came from a batch file, and why others did not."""
    reasons = "".join(f"; {count} {why}" for why, count in left.items())
    say(f"{taken} answers taken from {path}{reasons}")


def say_batches(folder: Path, written: Mapping[str, int]) -> None:
    """Print which files of requests were written."""
    for name, count in written.items():
        say(f"{folder / name}: {counted(count, 'request')}; give its output file to --read-batch")
    if written:
        say("the budget and the set count batches at the list price; a provider may bill less")
    else:
        say("every call is answered; there is nothing to write")


def say_cost(estimate: Estimate, record: Record, budget_usd: float) -> None:
    """Print the calls to make, what they can cost at most, and what is spent."""
    calls = ", ".join(f"{count:,} {stage}" for stage, count in estimate.calls.items()) or "none"
    mean = estimate.about_usd
    about = "" if mean is None else f", about {usd(mean)} judging by the calls so far"
    say(f"calls still to make: {calls}; at most {usd(estimate.most_usd)}{about}; "
        f"committed {usd(record.committed_usd)} of {set_usd(budget_usd)}")  # fmt: skip


@contextmanager
def spending_bar(total: int, unit: str) -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr with the money spent and what was set aside."""
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, file=sys.stderr, mininterval=0.5) as bar:

        def step(progress: Progress) -> None:
            aside = f", {progress.aside} set aside" if progress.aside else ""
            bar.set_postfix_str(f"{usd(progress.spent_usd)}{aside}", refresh=False)
            bar.update(progress.done - bar.n)

        yield step
