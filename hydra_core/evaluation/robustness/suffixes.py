"""An operator's own suffixes beside those that come with the console."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hydra_core.errors import EvalSetError, Problem
from hydra_core.evaluation.robustness.attack import Families

__all__ = ["own_suffixes", "suffix_lines"]

_MOST_FAMILIES = 32
_MOST_CHARS = 2_000


def own_suffixes(path: Path) -> Families:
    """Suffixes of a file: YAML family -> language -> suffix, or plain text, one a line.

    Raises:
        EvalSetError: It is neither, or too much.
    """
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() not in (".yaml", ".yml"):
        return suffix_lines(text, path.name)
    remedy = "family: {en: suffix, de: suffix}"
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        raise EvalSetError(path.name, [Problem("", f"is not YAML: {error}", remedy)]) from error
    good = isinstance(found, dict) and all(
        isinstance(one, dict) and isinstance(one.get("en"), str) for one in found.values()
    )
    if not good:
        raise EvalSetError(path.name, [Problem("", "each family needs at least en", remedy)])
    families = {str(name): {str(k): str(v) for k, v in one.items()} for name, one in found.items()}
    return _bounded(families, path.name)


def suffix_lines(text: str, source: str) -> Families:
    """Suffixes typed one a line; each is a family of its own and the same in every language.

    Raises:
        EvalSetError: Too many, or one too long.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _bounded({f"own {number}": {"en": line} for number, line in enumerate(lines, 1)}, source)


def _bounded(families: Families, source: str) -> Families:
    problems = [
        Problem(name, f"{code} has {len(suffix):,} characters", f"at most {_MOST_CHARS:,}")
        for name, suffixes in families.items()
        for code, suffix in suffixes.items()
        if len(suffix) > _MOST_CHARS
    ]
    if len(families) > _MOST_FAMILIES:
        remedy = f"give at most {_MOST_FAMILIES} at a time"
        problems.append(Problem("", f"{len(families)} families of suffixes", remedy))
    if problems:
        raise EvalSetError(source, problems)
    return families
