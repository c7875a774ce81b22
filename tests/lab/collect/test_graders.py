"""Graders: what counts as right, and what cannot be graded and never counts as wrong."""

import json
import sys

import pytest

from hydra_core.lab.collect.graders import (
    EXAMPLE,
    Grader,
    Kind,
    UngradedError,
    agreement,
    grade,
    load_settings,
    score_of,
)

SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("grader", "answer", "reference", "score"),
    [
        (Grader(Kind.EXACT), " Paris\n", "Paris", 1.0),
        (Grader(Kind.EXACT), "paris", "Paris", 0.0),
        (Grader(Kind.EXACT, ignore_case=True), "paris", ["London", "Paris"], 1.0),
        (Grader(Kind.CONTAINS), "It is Paris, of course.", "Paris", 1.0),
        (Grader(Kind.CONTAINS), "It is Lyon.", "Paris", 0.0),
        (Grader(Kind.REGEX, pattern=r"^\d+$"), "42", None, 1.0),
        (Grader(Kind.REGEX), "forty-two", r"\bforty", 1.0),
        (Grader(Kind.NUMBER), "18 + 24 makes 42.", "42", 1.0),
        (Grader(Kind.NUMBER), "About 1,234.5 dollars", 1234.5, 1.0),
        (Grader(Kind.NUMBER), "42 apples cost 43", "42", 0.0),
        (Grader(Kind.NUMBER, tolerance=0.01), "3.14", "3.1416", 1.0),
        (Grader(Kind.NUMBER, tolerance=0.01), "1990", "2000", 1.0),
        (Grader(Kind.NUMBER), "2023", "2024", 0.0),
        (Grader(Kind.NUMBER), "1,048,577", "1048576", 0.0),
        (Grader(Kind.NUMBER), "1234567.89", "1,234,567.890001", 1.0),
        (Grader(Kind.NUMBER), "no figure here", "42", 0.0),
        (Grader(Kind.JSON_SCHEMA, schema=SCHEMA), 'So:\n```json\n{"name": "x"}\n```', None, 1.0),
        (Grader(Kind.JSON_SCHEMA, schema=SCHEMA), '{"name": 3}', None, 0.0),
        (Grader(Kind.JSON_SCHEMA), "not JSON", SCHEMA, 0.0),
        (Grader(Kind.MULTIPLE_CHOICE), "I think the answer is (C).", "C", 1.0),
        (Grader(Kind.MULTIPLE_CHOICE), "B", "(b)", 1.0),
        (Grader(Kind.MULTIPLE_CHOICE), "A good question. Option: D", "A", 0.0),
        *(
            (Grader(Kind.NUMBER), *case, 1.0)
            for case in (
                ("It is −3.", "-3"),
                ("1\u202f234 km", "1234"),
                ("between 3-5", 5),
                ("COVID-19", 19),
                ("about 1.2 × 10^3", "1200"),
                ("-7", "−7"),
                ("It costs $80", "$80.00"),
                ("80 %", "80%"),
                ("12,5", "12.5"),
                ("0,125 kg, so 1.234,5", "1.234,5"),
                ("12,500", 12500),
                ("12{,}500", 12500),
                ("1,2,3", 3),
                ("It is 3/4.", "0,75"),
                (r"\boxed{\frac{3}{4}}", "3/4"),
                ("on 3/4/2024", 2024),
                ("It takes 1 3/4 hours.", "1.75"),
                (r"\boxed{-1\frac{3}{4}}", "-7/4"),
                ("2½ cups", "2 1/2"),
                ("¾", 0.75),
                (r"$-\frac{1}{2}$", "-½"),
                ("In 2024 3/4", "3/4"),
                ("about 10^6", "1e6"),
                ("10^{-2}", "0.01"),
                ("3 × 10⁶", "3000000"),
                ("10⁻³", "0.001"),
                ("1'234.5", "1234.5"),
                ("It is –3.", "-3"),
                ("3–5", "5"),
                ("2^10 is 1024", "1024"),
            )
        ),
        (Grader(Kind.NUMBER), "It is −3.", "3", 0.0),
        (Grader(Kind.NUMBER), "12,5 or 3/4", "4", 0.0),
        (Grader(Kind.NUMBER), "1/0", "0", 0.0),
        *(
            (Grader(Kind.MULTIPLE_CHOICE), *case, 1.0)
            for case in (
                ("B. A mitochondrion is the powerhouse", "B"),
                ("B, because I know it", "B"),
                ("The answer is a protein, so C.", "C"),
                ("(b)", "B"),
                ("answer: b", "B"),
                ("The answer is C because option A is wrong.", "C"),
                ("**Answer:** D", "D"),
                ("B\n\nNeither A nor C fits.", "B"),
                ("A is correct", "A"),
                ("I", "I"),
                ("The best one is E. I hope this helps!", "E"),
                ("\\boxed{C}", "C"),
                ("B", "B) 12 V"),
                ("Answer: I believe that it is D", "D"),
                ("It is A.", ["(A)", "C"]),
                ("B) Paris\n\nOption A is wrong, and so is C.", "B"),
                ("**B**: because A is wrong", "B"),
                ("A) is wrong. B) is right.", "B"),
                ("答案是B", "B"),
            )
        ),
    ],
)
def test_an_answer_is_right_or_wrong(grader, answer, reference, score):
    assert grade(grader, answer, {"reference": reference}) == score


@pytest.mark.parametrize(
    ("grader", "message"),
    [
        (Grader(Kind.EXACT), {}),
        (Grader(Kind.NUMBER), {"reference": "forty"}),
        (Grader(Kind.MULTIPLE_CHOICE), {"reference": "Paris"}),
        (Grader(Kind.MULTIPLE_CHOICE), {"reference": 1}),
        (Grader(Kind.REGEX), {"reference": "(unclosed"}),
        (Grader(Kind.JSON_SCHEMA), {"reference": {"type": 3}}),
        (Grader(Kind.COMMAND, argv=("no-such-program-here",)), {}),
        (Grader(Kind.COMMAND, argv=(sys.executable, "-c", "raise SystemExit(3)")), {}),
        (Grader(Kind.COMMAND, argv=(sys.executable, "-c", "print('fine')")), {}),
        (Grader(Kind.COMMAND, argv=(sys.executable, "-c", "print(1.5)")), {}),
        (
            Grader(
                Kind.COMMAND,
                argv=(sys.executable, "-c", "import time; time.sleep(9)"),
                timeout_s=0.2,
            ),
            {},
        ),
    ],
)
def test_what_cannot_be_graded_says_why(grader, message):
    with pytest.raises(UngradedError, match=r"\w+"):
        grade(grader, '{"a": 7} 42', message)


def test_a_command_gets_the_message_with_its_answer_and_gives_a_score():
    program = (
        "import json, sys; row = json.load(sys.stdin); "
        "print(json.dumps({'score': float(row['answer'] == row['reference'])}))"
    )
    grader = Grader(Kind.COMMAND, argv=(sys.executable, "-c", program))
    assert grade(grader, "yes", {"id": "q", "reference": "yes"}) == 1.0
    assert grade(grader, "no; rm -rf /", {"id": "q", "reference": "yes"}) == 0.0


NO_SCORES = ["NaN", '{"score": NaN}', "true", "[]", "-0.1", "1.01", "{" * 80_000]


@pytest.mark.parametrize("text", NO_SCORES)
def test_a_score_that_is_none_is_refused(text):
    with pytest.raises(UngradedError):
        score_of(text)


def test_a_score_may_stand_in_words():
    assert score_of('Here it is: {"score": 0.5} as asked') == 0.5
    assert score_of(json.dumps(1)) == 1.0


def test_agreement_counts_pairs_that_differ_little():
    assert agreement([]) is None
    assert agreement([(1.0, 1.0), (1.0, 0.0), (0.5, 0.6), (0.0, 0.2)]) == 0.75


def test_the_printed_example_grades_whole_numbers_exactly():
    settings = load_settings(EXAMPLE)
    grader = settings.graders[settings.default]
    assert [grade(grader, year, {"reference": "2024"}) for year in ("2024", "2023")] == [1.0, 0.0]
