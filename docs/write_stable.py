"""What a version promises to keep, as the code has it: docs/reference/stable.json.

python -m docs.write_stable

Run it for a release only. A test holds the code to the file of the last release: nothing in it may
be missing before the next major version. What came since then is no part of the promise yet.
"""

import argparse
import inspect
import json
import re
from collections.abc import Iterator
from enum import EnumType
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from docs.command_page import verbs_of
from docs.write_reference import EXAMPLE, asked
from hydra_core.base.shipped import VERSION
from hydra_core.cli.main import build_parser
from hydra_core.server.wire import Form

_ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = _ROOT / "docs" / "reference" / "stable.json"


def main() -> None:
    """Write the promise of this version."""
    FILE.write_text(json.dumps(promise(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def promise() -> dict[str, Any]:
    """Everything that docs/stable.md promises, by kind."""
    return {
        "version": VERSION,
        "schemas": sorted(_schemas()),
        "catalog keys": sorted(one.place for one in asked(EXAMPLE.read_text(encoding="utf-8"))),
        "http": sorted(paths()),
        "verbs": {
            name: sorted(_options(parser))
            for name, _, parser in verbs_of(build_parser())
            if not name.startswith("lab ")
        },
        "python": {name: _names(name) for name in sorted(documented())},
    }


def _schemas() -> set[str]:
    """Names and versions of the formats that are written to disk."""
    files = (_ROOT / "hydra_core").rglob("*.py")
    return {
        name
        for file in files
        for name in re.findall(r'"(hydra\.[a-z_]+/v\d+)"', file.read_text(encoding="utf-8"))
    }


def paths() -> set[str]:
    """Paths of the router's HTTP interface."""
    app = (_ROOT / "hydra_core" / "server" / "app.py").read_text(encoding="utf-8")
    return set(re.findall(r'\bRoute\("([^"]+)"', app)) | {f"/v1{form.path}" for form in Form}


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not isinstance(action, argparse._HelpAction):
            yield max(action.option_strings, key=len) if action.option_strings else action.dest


def documented() -> set[str]:
    """Modules whose names are on the pages under Reference, Python."""
    pages = (_ROOT / "docs" / "reference" / "python").glob("*.md")
    found = [re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.M) for page in pages]
    return {name for names in found for name in names}


def _names(module: str) -> dict[str, list[str]]:
    """Public name -> its parameters, or the members of an enumeration."""
    loaded = import_module(module)
    found = {}
    listed = getattr(loaded, "__all__", None)  # some of it may be loaded when it is asked for
    for name in listed or vars(loaded):
        value = getattr(loaded, name)
        own = listed or getattr(value, "__module__", module) == module
        if name.startswith("_") or inspect.ismodule(value) or not own:
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            found[name] = _parameters(value)
    return found


def _parameters(value: type | FunctionType) -> list[str]:
    if isinstance(value, EnumType):
        return list(value.__members__)
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in parameters if not name.startswith("_")]


if __name__ == "__main__":
    main()
