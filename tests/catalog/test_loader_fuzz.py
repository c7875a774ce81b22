"""Whatever is thrown at the loader: a valid catalog or a CatalogError, soon, and nothing else."""

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import CatalogError
from hydra_core.base.types import Catalog
from hydra_core.catalog import CatalogDocument, load_catalog, parse_catalog
from tests.catalog.small import SMALL

BOMB = "a: &a [x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}]\n" for p, c in pairwise("abcdefghi"))
NASTY = {
    "alias bomb": (BOMB + SMALL, "anchor &a is refused"),
    "merge key": (SMALL + "x: &x {a: 1}\ny: {<<: *x}\n", "alias *x is refused"),
    "python object": (
        SMALL.replace("name: small", "name: !!python/object/apply:os.mkdir [hydra_was_here]"),
        "tag 'tag:yaml.org,2002:python/object/apply:os.mkdir' is refused",
    ),
    "python name": (SMALL.replace("small", "!!python/name:os.system"), "is refused"),
    "tagged number": (SMALL.replace("tau: 0.24", "tau: !!float 0.24"), "is refused"),
    "local tag": (SMALL.replace("tau: 0.24", "tau: !secret 0.24"), "tag '!secret' is refused"),
    "directive": ("%YAML 1.1\n---\n" + SMALL, "directives"),
    "many directives": ("".join(f"%TAG !a{i}! x\n" for i in range(300_000)), "directives"),
    "two documents": (SMALL + "---\n" + SMALL, "second YAML document"),
    "tab": (SMALL.replace("  tau", "\ttau"), "replace the tab by spaces"),
    "inner byte order mark": (SMALL.replace("policy:", "\ufeffpolicy:"), "not valid YAML"),
    "NUL": (SMALL.replace("small", "sm\0ll"), "control characters"),
    "surrogate": (SMALL.replace("small", "sm\ud800ll"), "U+D800"),
    "list as key": (SMALL.replace("name: small", "? [a, b]\n: small"), "used as a key"),
    "endless number": (SMALL.replace("0.24", "9" * 5000), "number of 5000 digits"),
    "unclosed quote": (SMALL.replace("small", "'small"), "not valid YAML"),
    "list at the top": ("- a\n- b\n", "must be a mapping, got a list of 2"),
    "scalar at the top": ("hello", "must be a mapping, got the text 'hello'"),
    "comment only": ("# nothing\n", "is empty"),
    "50 MB": ("#" * 50_000_000, "larger than 5 MB"),
    "5 MB scalar": ("name: " + "x" * 4_900_000, "schema"),
    "5 MB comment": ("# " + "x" * 4_900_000, "is empty"),
    "deep lists": ("[" * 2_000_000, "nested deeper than 16"),
    "deep dashes": ("- " * 2_000_000, "nested deeper than 16"),
    "deep keys": ("? " * 2_000_000, "nested deeper than 16"),
    "deep mappings": ("{a: " * 1_000_000, "nested deeper than 16"),
    "a million values": ("[" + "1," * 1_000_000 + "]", "more than 100,000 values"),
    "a million keys": ("".join(f"k{i}: 1\n" for i in range(300_000)), "more than 100,000 values"),
    "one key often": ("a: 1\n" * 500_000, "given twice"),
    "many unknown keys": (SMALL + "".join(f"nmae{i}: 1\n" for i in range(40_000)), "not listed"),
    "many models": (SMALL + "  - {id: x}\n" * 20_000, "at most 1,000"),
    "many bad models": (SMALL + "  - {id: x}\n" * 900, "given twice"),
    "many bad scores": (
        SMALL.replace(
            "bugs: 0.4}", "bugs: 0.4, " + ", ".join(f"pzzl{i}: x" for i in range(9000)) + "}"
        ),
        "did you mean",
    ),
    "long keys": (SMALL + "".join(f"{'k' * 900}{i}: 1\n" for i in range(500)), "not a known key"),
}


@pytest.mark.parametrize(("text", "message"), NASTY.values(), ids=NASTY.keys())
def test_nasty_files_are_refused_in_bounded_time_with_a_readable_message(
    text, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    start = time.process_time()
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text, "pool.yaml")
    assert time.process_time() - start < 2.0
    assert message in str(caught.value)
    assert len(str(caught.value)) < 60_000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["alias bomb", "5 MB scalar", "deep lists"])
def test_memory_stays_bounded(name):
    tracemalloc.start()
    try:
        with pytest.raises(CatalogError):
            parse_catalog(NASTY[name][0])
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()


def outcome(text: str) -> Catalog | CatalogError:
    """What the loader makes of `text`; any other exception fails the test."""
    try:
        return parse_catalog(text)
    except CatalogError as error:
        return error


def check(text: str) -> None:
    """A valid catalog, or an error with something to say."""
    start = time.process_time()
    found = outcome(text)
    assert time.process_time() - start < 2.0
    assert isinstance(found, Catalog) or (found.problems and str(found))


quick = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quick
@given(st.text())
def test_any_text(text):
    check(text)


@quick
@given(data=st.binary(max_size=300))
def test_any_bytes_in_a_file(data, tmp_path):
    path = tmp_path / "pool.yaml"
    path.write_bytes(data)
    with pytest.raises(CatalogError):
        load_catalog(path)


@quick
@given(st.text(alphabet="[]{}:,-?!&*|>'\"%@#\\ \n\tab1.~<", max_size=80))
def test_any_yaml_punctuation(text):
    check(text)


@settings(quick, max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SMALL)),
            st.integers(0, 12),
            st.one_of(
                st.text(max_size=6),
                st.sampled_from(
                    ["\t", "&a ", "*a", "!!x ", ".nan", "-1", "true", "null", "{", "]", ": "]
                ),
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_catalog_with_characters_cut_out_and_put_in(edits):
    text = SMALL
    for at, cut, put in edits:
        text = text[:at] + put + text[at + cut :]
    check(text)


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("derived")
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths(data, prefix=()):
    """Every path of a nested document."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, child in pairs:
        yield (*prefix, key)
        if isinstance(child, dict | list):
            yield from paths(child, (*prefix, key))


PATHS = list(paths(CatalogDocument.parse(SMALL).data()))


@settings(quick, max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(PATHS), values), min_size=1, max_size=3))
def test_a_catalog_with_any_value_at_any_place(edits):
    document = CatalogDocument.parse(SMALL)
    for path, value in edits:
        try:
            document.set(*path, value)
        except CatalogError:
            continue
    check(document.text())
