"""The documentation is true: links lead somewhere, commands parse, Python runs."""

import contextlib
import copy
import functools
import importlib.util
import io
import itertools
import operator
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from markdown.extensions.toc import slugify

from benchmarks.attacks.__main__ import TESTS
from docs import write_reference
from docs.command_page import PAGE, command_page
from hydra_core.base.errors import CatalogError
from hydra_core.catalog.schema import parse_catalog
from hydra_core.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BESIDE = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
CALL = re.compile(r"(?:python -m hydra_core|hydra-router) (.*)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def named(path):
    return str(path.relative_to(ROOT))


def blocks(path, *languages):
    return [body for kind, body in FENCE.findall(path.read_text()) if kind in languages]


def test_security_promises_only_what_an_attack_tries():
    text = (DOCS / "security.md").read_text()
    promises = text.partition("## Promises")[2].partition("\n`python -m benchmarks.attacks`")[0]
    tried = shlex.split(" ".join(TESTS.values()))
    named = set(re.findall(r"`(tests/[^`]+)`", promises))
    untried = {one for one in named if not {one, str(Path(one).parent)} & set(tried)}
    assert len(named) > 20
    assert not untried


def test_the_reference_is_what_the_readers_say():
    for name, text in write_reference.pages().items():
        remedy = "stale: run `python -m docs.write_reference`"
        assert (write_reference.FOLDER / name).read_text() == text, remedy


def test_a_key_that_the_reader_gains_is_on_the_page():
    text = write_reference.EXAMPLE.read_text()
    places = [asked.place for asked in write_reference.asked(text)]
    assert {"policy.tau", "models[].input_usd_per_mtok", "bands.<dimension>"} <= set(places)
    assert len(places) == len(set(places))


def keys_of(node, path=()):
    """(path to the holder, key) of every key of a document."""
    for key, inside in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(node, dict):
            yield path, key
        if isinstance(inside, dict | list):
            yield from keys_of(inside, (*path, key))


def test_a_key_is_needed_where_the_page_says_so():
    """No catalog that lacks it is read. (A level of effort has its base's capabilities.)"""
    text = write_reference.EXAMPLE.read_text()
    whole, spare = yaml.safe_load(text), set()
    for path, key in keys_of(whole):
        less = copy.deepcopy(whole)
        del functools.reduce(operator.getitem, path, less)[key]
        place = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in (*path, key))[1:]
        with contextlib.suppress(CatalogError):
            parse_catalog(yaml.safe_dump(less, sort_keys=False), "less.yaml")
            spare.add(write_reference.general(place))
    needed = {a.place for a in write_reference.asked(text) if write_reference.needed(a) == "yes"}
    assert needed & spare == {"models[].capabilities"}


def anchors(path):
    text = FENCE.sub("", path.read_text())
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {slugify(re.sub(r"[`*]", "", head), "-") for head in heads}


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=named)
def test_every_link_leads_somewhere(path):
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        made = to == DOCS / PAGE
        if not (made or to.exists()) or (anchor and anchor not in anchors(to)):
            lost.append(target)
    assert lost == []


def commands(path):
    """Arguments of every call of the command line that a page's blocks show."""
    for body in blocks(path, "", "sh", "bash"):
        for call in CALL.findall(body.replace("\\\n", " ")):
            words = shlex.shlex(call, posix=True, punctuation_chars="|<>&;")
            words.whitespace_split = True
            yield list(itertools.takewhile(lambda word: not set(word) <= set("|<>&;"), words))


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=named)
def test_every_command_shown_is_one(path):
    parser, refused = build_parser(), []
    for arguments in commands(path):
        told = io.StringIO()
        try:
            with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
                parser.parse_known_args(arguments)
        except SystemExit as end:
            if end.code:
                refused.append(" ".join(arguments) + ": " + told.getvalue()[-200:])
    assert refused == []


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=named)
def test_every_module_shown_is_there(path):
    shown = re.findall(r"python -m ([a-z_.]+)|^::: ([a-z_.]+)", path.read_text(), re.MULTILINE)
    modules = {run or described for run, described in shown} - {"http.server"}
    ours = [name for name in modules if name.split(".")[0] in ("hydra_core", "benchmarks", "docs")]
    lost = [name for name in ours if importlib.util.find_spec(name.rstrip(".")) is None]
    assert lost == []


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=named)
def test_every_name_shown_with_its_file_is_there(path):
    shown = re.findall(r"`(hydra_core/[\w/]+\.py)(?::(\w+))?`", path.read_text())
    lost = [
        f"{file}:{name}"
        for file, name in shown
        if not re.search(rf"^\s*(?:def |class )?{name}\b", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert lost == []


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "python")], ids=named)
def test_python_shown_runs(path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for body in blocks(path, "python"):
        exec(compile(body, named(path), "exec"), {})
        assert capsys.readouterr().out.strip()


def test_the_command_page_has_every_verb():
    page = command_page()
    assert "## import table\n" in page
    assert "| `--tau T` | threshold (default: the catalog's) |" in page


def test_every_page_is_in_the_navigation():
    listed = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    given = set(re.findall(r"[\w/]+\.md", str(listed)))
    assert given == {str(path.relative_to(DOCS)) for path in PAGES} | {PAGE}


@pytest.mark.package
def test_the_site_is_built_and_read_without_a_network(tmp_path):
    # tests/conftest.py guards the sockets of processes that a test starts, too
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(tmp_path)]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        fetched = re.findall(r'(?:src|<link[^>]* href)="(?:https?:)?//[^"]+"', page.read_text())
        assert fetched == [], page.name
    assert "VerdictLabel" in (tmp_path / "reference" / "python" / "evaluation.html").read_text()
