"""The reference of the command line, from its own grammar, made whenever the site is built."""

import argparse
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hydra_core.cli.main import build_parser

PAGE = "reference/commands.md"

_PROGRAM = "python -m hydra_core"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs once it has found the written pages."""
    files.append(File.generated(config, PAGE, content=command_page()))
    return files


def command_page() -> str:
    """Every verb with what it does, its examples and its options."""
    lines = [
        "# Command line",
        "",
        f"`hydra-router` is the same as `{_PROGRAM}`. Exit codes: 0 done; 2 the input is not "
        "valid; 1 it could not be run.",
    ]
    for name, short, parser in verbs_of(build_parser()):
        lines += ["", f"## {name}", "", f"{short[:1].upper()}{short[1:]}.", ""]
        lines += _description(parser) + _options(parser)
    return "\n".join(lines) + "\n"


def verbs_of(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Name, one line and grammar of every verb, those under a verb after it."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        short = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, below in action.choices.items():
            if not any(isinstance(one, argparse._SubParsersAction) for one in below._actions):
                yield f"{before}{name}", short[name], below
            yield from verbs_of(below, f"{before}{name} ")


def _description(parser: argparse.ArgumentParser) -> list[str]:
    """The text of --help, its examples and files as a block to copy."""
    return ["```text", (parser.description or "").strip(), "```", ""]


def _options(parser: argparse.ArgumentParser) -> list[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        takes = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
        if action.choices is not None and action.metavar is None:
            takes = ", ".join(map(str, action.choices))
        takes = " ".join(takes) if isinstance(takes, tuple) else takes
        name = " ".join(filter(None, ("/".join(action.option_strings), takes)))
        said = (action.help or "").replace("|", "\\|").replace("%%", "%")
        rows.append(f"| `{name}` | {said} |".replace("C.yaml|store", "C.yaml\\|store"))
    return ["| option | what it says |", "| --- | --- |", *rows] if rows else []
