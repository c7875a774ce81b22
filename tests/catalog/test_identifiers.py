"""Names that a reader cannot tell apart are one name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.catalog.identifiers import id_problem, proposed_ids, skeleton


@pytest.mark.parametrize(
    "name",
    ["gpt-5.4-mini", "anthropic/claude-haiku-4.5", "qwen3:8b@q4", "модель-5", "通义千问-v2", "o1"],
)
def test_usual_names_are_ids(name):
    assert id_problem(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "empty"),
        ("x" * 129, "129 characters"),
        ("gpt\u20115", "non-breaking hyphen (U+2011)"),
        ("gpt-5\u200d", "zero width joiner (U+200D)"),
        ("gpt-5\u202e", "right-to-left override (U+202E)"),
        ("gpt-\uff15", "NFKC"),
        ("gpt-\u0665", "mixes alphabets"),
        ("g\u0440t-5", "'р' (cyrillic)"),
        ("gpt-\u03bf1", "'ο' (greek)"),
        ("\ua4d6pt-5", "(lisu)"),
        ("gpt 5", "space"),
        ("-5", "begin with a letter or digit"),
        ("<script>", "less-than sign"),
        ("a\nb", "U+000A"),
    ],
)
def test_disguises_and_markup_are_no_ids(name, message):
    problem = id_problem(name)
    assert problem is not None
    assert message in problem[0]
    assert problem[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [("gpt-5", "GPT-5"), ("cop", "сор"), ("HOT", "НОТ"), ("gpt-5", "gpt-\uff15"), ("oko", "око")],
)
def test_names_that_look_the_same_share_a_skeleton(one, other):
    assert skeleton(one) == skeleton(other)


@pytest.mark.parametrize(("one", "other"), [("gpt-5", "gpt-5.1"), ("qwen-vl", "qwen-v1")])
def test_names_that_read_differently_do_not(one, other):
    assert skeleton(one) != skeleton(other)


@pytest.mark.parametrize(
    ("name", "proposal"),
    [
        ("gpt-4o", "gpt-4o"),
        ("GPT-4o", "GPT-4o"),  # can be an id as it is
        ("GPT 4o (May)", "gpt-4o-may"),
        ("Llama 3 70B — instruct", "llama-3-70b-instruct"),
        ("Modèle 1", "modele-1"),
        ("  ", "model"),
        ("模型 1", "模型-1"),
    ],
)
def test_a_name_that_cannot_be_an_id_gets_a_plain_one_proposed(name, proposal):
    assert proposed_ids([name]) == {name: proposal}


@given(st.lists(st.text(max_size=160), max_size=6))
def test_proposals_are_ids_and_no_two_look_alike(names):
    found = proposed_ids(names)
    assert all(id_problem(one) is None for one in found.values())
    new = [skeleton(one) for name, one in found.items() if one != name]
    kept = {skeleton(one) for name, one in found.items() if one == name}
    assert len(set(new)) == len(new)
    assert not kept & set(new)
