"""Merges two edits of the same catalog, value by value: by key path, entries of lists by their id.

What only I changed is written into their text; their comments, order and spelling of numbers stay.
What both changed differently is a conflict: their value stands until somebody chooses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.reading.yaml_reader import ListNode, MapNode, Node, ScalarNode, read_yaml
from hydra_core.catalog.diff import Change, semantic_diff
from hydra_core.catalog.editing.document import CatalogDocument, Data, Value
from hydra_core.catalog.schema import parse_catalog


def reordered(
    document: CatalogDocument, path: Sequence[str], ids: Sequence[str]
) -> CatalogDocument:
    """The document with the entries named in `ids` in that order among themselves.

    Entries that `ids` does not name keep their places in the list, to which `path` leads.

    Raises:
        CatalogError: The list is written in a form whose entries cannot be moved.
    """
    bom = "\ufeff" if document.text().startswith("\ufeff") else ""
    text = document.text().removeprefix("\ufeff")
    node = _at(text, path)
    if not isinstance(node, ListNode) or node.flow:
        raise _refused("is not a list with one entry below the other")
    now = [_id(item) for item in node.items]
    wanted = _order(now, ids)
    cuts = _cuts(text, node)
    blocks = [text[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
    blocks = [block if block.endswith("\n") else f"{block}\n" for block in blocks]
    moved = text[: cuts[0]] + "".join(blocks[index] for index in wanted) + text[cuts[-1] :]
    if not text.endswith("\n"):
        moved = moved.removesuffix("\n")
    result = CatalogDocument.parse(bom + moved, "the reordered catalog")
    items = document.get(*path)
    assert isinstance(items, list)
    if result.data() != _replaced(document.data(), path, [items[index] for index in wanted]):
        raise _refused("cannot be reordered without changing other values")
    return result


def _order(now: Sequence[str], ids: Sequence[str]) -> list[int]:
    queue = iter([now.index(name) for name in ids])
    named = set(ids)
    return [next(queue) if name in named else index for index, name in enumerate(now)]


def _cuts(text: str, node: ListNode) -> list[int]:
    """Where each entry begins, with the comment lines right above it, and where the last ends."""
    indent = " " * (node.column - 1)
    starts = []
    for index, item in enumerate(node.items):
        at = text.rindex("\n", 0, text.rindex("-", 0, item.start)) + 1
        while index and text[text.rindex("\n", 0, at - 1) + 1 :].startswith(f"{indent}#"):
            at = text.rindex("\n", 0, at - 1) + 1
        starts.append(at)
    found = text.find("\n", node.items[-1].end)
    return [*starts, len(text) if found < 0 else found + 1]


def _at(text: str, path: Sequence[str]) -> Node | None:
    """The node that keys, and ids of list entries, lead to."""
    node: Node | None = read_yaml(text)[0]
    for key in path:
        if isinstance(node, ListNode):
            node = next((item for item in node.items if _id(item) == key), None)
        else:
            node = node.get(key) if isinstance(node, MapNode) else None
    return node


def _id(node: Node) -> str:
    found = node.get("id") if isinstance(node, MapNode) else None
    return str(found.value) if isinstance(found, ScalarNode) else ""


def _replaced(data: Data, path: Sequence[str], value: Data) -> Data:
    if not path:
        return value
    assert isinstance(data, dict)
    return {**data, path[0]: _replaced(data[path[0]], path[1:], value)}


def _refused(message: str) -> CatalogError:
    return CatalogError.of("the order", message, "move the entries by hand in the YAML text")


def spelled(text: str, path: Sequence[str]) -> Value:
    """The value at `path` (keys, and ids of list entries), which `text` has; "0.80" stays 0.80."""
    text = text.removeprefix("\ufeff")
    node = _at(text, path)
    assert node is not None
    return _value(text, node)


def _value(text: str, node: Node) -> Value:
    match node:
        case MapNode():
            return {key: _value(text, value) for key, (_, value) in node.entries.items()}
        case ListNode():
            return [_value(text, item) for item in node.items]
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return node.value
    return Decimal(text[node.start : node.end])


Path: TypeAlias = tuple[str, ...]
Choice: TypeAlias = Literal["mine", "theirs"]


class _Absent:
    """Stands for a value that is not there (None is a value)."""

    def __repr__(self) -> str:
        return "(absent)"


_ABSENT: Final = _Absent()
_Tree: TypeAlias = "Data | _Absent"
#: Last step of the path that stands for the order of a list's entries.
ORDER: Final = "(order)"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One value that both changed, differently.

    Attributes:
        path: Keys and ids that lead to it; ("models", "(order)") is the order of the models.
        base, mine, theirs: The three values as text.
    """

    path: Path
    base: str
    mine: str
    theirs: str

    def __str__(self) -> str:
        where = " ".join(self.path)
        return f"{where}: was {self.base}; yours {self.mine}; theirs {self.theirs}"


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged text and what could not be decided.

    Attributes:
        text: Their text with my edits; at conflicts nobody decided, their value.
        conflicts: Values that both changed, still to be decided.
        applied: What the merge changes in their text, in words; empty where the merged text is
            not a valid catalog.
        problems: Why the merged text is not a valid catalog although both edits were: they do not
            fit together (one removed a benchmark, the other gave a rate on it).
    """

    text: str
    conflicts: tuple[Conflict, ...]
    applied: tuple[Change, ...]
    problems: tuple[Problem, ...]

    @property
    def clean(self) -> bool:
        """Whether the text can be published as it is."""
        return not self.conflicts and not self.problems


@dataclass(slots=True)
class _Merge:
    """Walks the three trees; `edits` are applied to their document afterwards, in order."""

    choices: Mapping[Path, Choice]
    spelled: Callable[[Path], Value]
    conflicts: list[Conflict] = field(default_factory=list)
    edits: list[Callable[[CatalogDocument], CatalogDocument]] = field(default_factory=list)

    def walk(self, path: Path, base: _Tree, mine: _Tree, theirs: _Tree) -> None:
        """Decide the value at `path` and below."""
        if _same(mine, base) or _same(mine, theirs):
            return
        ours, others = _keyed(mine), _keyed(theirs)
        if ours is not None and others is not None:
            before = _keyed(base) or {}
            self._each(path, before, ours, others)
            if isinstance(mine, list):
                self._order(path, list(before), list(ours), list(others))
        elif _same(theirs, base) or self._decide(path, *map(_shown, (base, mine, theirs))):
            self._take(path, mine)

    def _each(
        self,
        path: Path,
        base: Mapping[str, Data],
        mine: Mapping[str, Data],
        theirs: Mapping[str, Data],
    ) -> None:
        for key in [*mine, *(key for key in base if key not in mine)]:
            values = (tree.get(key, _ABSENT) for tree in (base, mine, theirs))
            self.walk((*path, key), *values)

    def _take(self, path: Path, value: _Tree) -> None:

        def edit(document: CatalogDocument) -> CatalogDocument:
            if isinstance(value, _Absent):
                document.remove(*path)
            elif isinstance(document.get(*path[:-1]), list) and not _has(document, path):
                document.append(*path[:-1], self.spelled(path))
            else:
                document.set(*path, self.spelled(path))
            return document

        self.edits.append(edit)

    def _order(self, path: Path, base: list[str], mine: list[str], theirs: list[str]) -> None:
        """The order of entries that all three have; it breaks ties between equal costs."""
        shared = [key for key in base if key in mine and key in theirs]
        orders = [[key for key in keys if key in shared] for keys in (base, mine, theirs)]
        if orders[1] in (orders[0], orders[2]):
            return
        words = [", ".join(keys) for keys in orders]
        if orders[2] == orders[0] or self._decide((*path, ORDER), *words):
            self.edits.append(lambda document: reordered(document, path, orders[1]))

    def _decide(self, path: Path, base: str, mine: str, theirs: str) -> bool:
        """Whether mine is taken; a conflict where nobody chose."""
        choice = self.choices.get(path)
        if choice is None:
            self.conflicts.append(Conflict(path, base, mine, theirs))
        return choice == "mine"


def three_way(
    base: str, mine: str, theirs: str, *, choices: Mapping[Path, Choice] | None = None
) -> MergeResult:
    """Merge two edits of `base`, the YAML text that both started from.

    Args:
        mine: My valid catalog.
        theirs: The other valid catalog, usually the newest revision.
        choices: What to take at conflicts, by path.

    Raises:
        CatalogError: One of the three is not a valid catalog.
    """
    for text, label in ((base, "the common base"), (mine, "your edit"), (theirs, "their edit")):
        parse_catalog(text, source=label)
    document = CatalogDocument.parse(theirs, "the merged catalog")
    trees = CatalogDocument.parse(base).data(), CatalogDocument.parse(mine).data(), document.data()
    merge = _Merge(choices or {}, lambda path: spelled(mine, path))
    merge.walk((), *trees)
    problems: list[Problem] = []
    for edit in merge.edits:
        try:
            document = edit(document)
        except CatalogError as error:
            problems.extend(error.problems)
    return _result(theirs, document.text(), merge.conflicts, problems)


def _result(
    theirs: str, text: str, conflicts: list[Conflict], problems: list[Problem]
) -> MergeResult:
    applied: tuple[Change, ...] = ()
    try:
        applied = semantic_diff(parse_catalog(theirs), parse_catalog(text, "the merged catalog"))
    except CatalogError as error:
        problems = [*problems, *error.problems]
    return MergeResult(text, tuple(conflicts), applied, tuple(problems))


def _has(document: CatalogDocument, path: Path) -> bool:
    try:
        document.get(*path)
    except CatalogError:
        return False
    return True


def _keyed(tree: _Tree) -> dict[str, Data] | None:
    """A mapping, or a list whose entries all have an id, by key; None for a single value."""
    if isinstance(tree, dict):
        return tree
    if not isinstance(tree, list) or not tree:
        return None
    ids = [item.get("id") if isinstance(item, dict) else None for item in tree]
    named = {name: item for name, item in zip(ids, tree, strict=True) if isinstance(name, str)}
    return named if all(isinstance(name, str) for name in ids) else None


def _same(one: _Tree, other: _Tree) -> bool:
    """Equal in meaning: the order of keys is not, and 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _shown(tree: _Tree) -> str:
    match tree:
        case _Absent():
            return "(not there)"
        case None:
            return "(empty)"
        case bool():
            return "true" if tree else "false"
        case dict():
            return f"an entry with {', '.join(list(tree)[:6])}"
        case list():
            return f"[{', '.join(map(_shown, tree))}]"[:200]
    text = f"{tree:g}" if isinstance(tree, float) and float(f"{tree:g}") == tree else str(tree)
    return text if len(text) <= 80 else f"{text[:77]}..."
