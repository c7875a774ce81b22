"""People as graders: blind forms, what comes back, and what is refused."""

import csv
import json

import numpy as np
import pytest

from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.lab.collect.people import forms_of
from hydra_core.store import Actor, Role, open_store
from tests.lab.collect.test_collect import LARGE, SMALL, command, files, grade, server

__all__ = ["files", "server"]


@pytest.fixture
def asked(files):
    """The files for people as graders, and the words of the command; answers are collected."""
    grade(files, "graders:\n  read: {kind: people, twice_share: 0.3}\n")
    words = command(files, files / "set")
    assert main(words) == 0
    return words


def form(folder, number=1):
    return folder / "set.collect" / "grades" / f"form-{number}.csv"


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path, into, give):
    """Write a form with what `give` says of each row: '' leaves a row empty."""
    rows = rows_of(path)
    with into.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "quality": give(row)} for row in rows)


def right(row):
    return 5 if row["answer"].startswith("right") else 2


def test_a_form_is_blind_shuffled_and_repeats_a_share(asked, files, capsys):
    rows = rows_of(form(files))
    assert not (files / "set").exists()
    assert list(rows[0]) == [
        *("query_id", "rater", "quality", "note", "request", "reference", "answer")
    ]
    whole = form(files).read_text() + (files / "set.collect" / "form-1.jsonl").read_text()
    assert not any(name in whole for name in (SMALL, LARGE, "small-1", "large-1"))
    numbers = [int(row["request"].split()[-1]) for row in rows]
    assert numbers != sorted(numbers)
    # equal answers of both models to the ten even numbers are graded once
    once = [one for one in forms_of(files / "set.collect")["form-1"] if not one.first]
    assert len(once) == 30
    assert 30 < len(rows) < 45
    assert main(asked) == 0
    assert f"{len(rows)} answers wait for people" in capsys.readouterr().err


def test_what_people_graded_is_written_and_the_rest_is_unknown(asked, files, server, capsys):
    paid = server.paid.total()
    fill(form(files), form(files), lambda row: right(row) if "9" not in row["request"] else "")
    assert main([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert server.paid.total() == paid
    assert said["models"][LARGE] == {
        "graded": 18, "quality": 1.0, "missing": {"people have not graded it yet": 2},
        "mean_cost_usd": said["models"][LARGE]["mean_cost_usd"],
        "as_long_as_allowed": 0,
    }  # fmt: skip
    assert said["people"]["raters"] == 1
    assert said["people"]["twice_agreement"] == 1.0
    made = load_evalset(files / "set")
    assert made.n == 18
    odd = np.array([int(name[1:]) % 2 for name in made.query_ids])
    np.testing.assert_allclose(made.quality[:, 0], np.where(odd, 0.25, 1.0))


def test_several_people_count_alike_and_their_agreement_is_said(asked, files, capsys):
    fill(form(files), files / "ana.csv", right)
    fill(form(files), files / "bo.csv", lambda row: right(row) - 1)
    assert main([*asked, "--grades", str(files / "ana.csv"), str(files / "bo.csv")]) == 0
    said = capsys.readouterr().out
    assert "answers graded by 2" in said
    assert "agreement of raters (alpha) 0." in said
    np.testing.assert_allclose(load_evalset(files / "set").quality[:, 1], 0.875)
    assert main([*asked, "--force"]) == 0  # what was taken in stays
    np.testing.assert_allclose(load_evalset(files / "set").quality[:, 1], 0.875)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{id},,6,", "line 2: quality must be a number from 1 to 5, got '6'"),
        ("{id},,good,", "got 'good' (write such as 4"),
        ("a00,,4,", "line 2: query_id 'a00' is not in the sample"),
        ("{id},ana,4,\n{id},ana,3,", "ana grades it 3 here and 4 in"),
    ],
)
def test_damaged_grades_name_row_value_and_remedy(asked, files, server, capsys, line, named):
    first = rows_of(form(files))[0]["query_id"]
    text = "query_id,rater,quality,note\n" + line.format(id=first) + "\n"
    (files / "g.csv").write_text(text)
    paid = server.paid.total()
    assert main([*asked, "--grades", str(files / "g.csv")]) == 2
    assert named in capsys.readouterr().err
    assert server.paid.total() == paid
    assert not (files / "set").exists()


def test_a_file_does_not_replace_the_grades_of_another_of_its_name(asked, files, capsys):
    fill(form(files), form(files), right)
    (files / "bo").mkdir()
    other = files / "bo" / "form-1.csv"
    fill(form(files), other, lambda row: 3)
    assert main([*asked, "--grades", str(other)]) == 2
    assert "name each file after its rater" in capsys.readouterr().err


def test_answers_that_come_later_are_on_a_form_of_their_own(files, server):
    grade(files, "graders:\n  read: {kind: people}\n")
    words = command(files, files / "set")
    assert main([*words, "--sample", "5"]) == 0
    fill(form(files), form(files), right)
    filled = form(files).read_bytes()
    assert main(words) == 0
    assert form(files).read_bytes() == filled
    assert load_evalset(files / "set").n == 5
    ids = [row["query_id"] for number in (1, 2) for row in rows_of(form(files, number))]
    assert len(ids) == len(set(ids)) == 30


def test_an_answer_cannot_run_in_a_spreadsheet(files, server):
    grade(files, "graders:\n  read: {kind: people}\n")
    said = {"choices": [{"message": {"content": "=1+1"}}], "usage": server.usage}
    server.write = lambda body, rubbish: json.dumps(said).encode()
    assert main(command(files, files / "set")) == 0
    assert {row["answer"] for row in rows_of(form(files))} == {"'=1+1"}
    assert {one.answer for one in forms_of(files / "set.collect")["form-1"]} == {"=1+1"}


def test_people_read_the_whole_conversation(files, server):
    long = "My number is 21. " + 20 * "I say much about it. "
    turns = [("user", long.strip()), ("assistant", "Noted."), ("user", "Double it, not 7")]
    row = {"id": "a", "messages": [{"role": who, "content": what} for who, what in turns]}
    (files / "messages.jsonl").write_text(json.dumps(row) + "\n")
    grade(files, "graders:\n  read: {kind: people}\n")
    assert main(command(files, files / "set")) == 0
    whole = "\n\n".join(f"{who.capitalize()}: {what}" for who, what in turns)
    assert {one.request for one in forms_of(files / "set.collect")["form-1"]} == {whole}


def test_grades_given_in_the_console_count(files, server, monkeypatch):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(files))
    grade(files, "graders:\n  read: {kind: people}\n")
    words = command(files, files / "evalsets" / "mine")
    (files / "evalsets").mkdir()
    assert main(words) == 0
    answers = forms_of(files / "evalsets" / "mine.collect")["form-1"]
    store = open_store(files)
    ana = Actor("ana", Role.PUBLISHER)
    sample = store.ratings.draw(
        "mine.collect form-1", actor=ana, evalset="mine.collect", evalset_digest="",
        dimensions=("quality",), query_ids=[one.id for one in answers],
    )  # fmt: skip
    for one in answers:
        store.ratings.rate(sample, one.id, [right({"answer": one.answer})], actor=ana)
    store.close()
    assert main(words) == 0
    assert load_evalset(files / "evalsets" / "mine").quality[:, 1].tolist() == [1.0] * 20
