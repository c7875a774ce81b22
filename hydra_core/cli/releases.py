"""Verbs on the store, without a browser: publish, look back, roll back, back up, audit."""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.digests import SHA256
from hydra_core.base.errors import HydraError, ProblemsError
from hydra_core.base.workspace import DATABASE, workspace_folder
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import CannotRunError, print_json, say, show
from hydra_core.cli.workspace import CATALOG, EVALSET, acting, existing, has_store, open_evalset

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.export.release import Provenance
    from hydra_core.store import Store
    from hydra_core.store.base import TrailCheck
    from hydra_core.store.records import Revision


_PUBLISH = """publish a catalog
Makes a catalog file the next revision of a name in the workspace's store (or the database of
HYDRA_DATABASE_URL), with the checks, roles and audit trail of the page Releases. `serve --catalog
store:NAME` takes it within seconds. With --evalset the figures measured there are kept with it.

examples:
  hydra-router publish mine --note "Haiku's price rose on 1 March"
  hydra-router publish pool.yaml --as pool --evalset mine
"""
_HISTORY = """revisions of a published catalog
Lists the revisions of a published catalog, newest first; without a name, what is published.

examples:
  hydra-router history
  hydra-router history pool --json
"""
_DIFF = """what two revisions do differently
Says what two revisions, or a revision and a catalog file, do differently; by default the newest
revision and the one before.

examples:
  hydra-router diff pool
  hydra-router diff pool 3 5
  hydra-router diff pool 3 pool.yaml
"""
_ROLLBACK = """bring a revision back
Publishes an earlier revision again, as a new one. Nothing is deleted.

example:
  hydra-router rollback pool 3 --note "the new price was a typo"
"""
_EXPORT = """write what is published as a file
Writes what is published as a file: a HyDRA release (YAML; a zip with its outcome model where the
file is named FILE.zip), or a configuration for another router.

examples:
  hydra-router export pool --out pool.yaml
  hydra-router export pool --out pool.zip
  hydra-router export pool --as litellm --out config.yaml
"""
_BACKUP = """copy the store
Copies the store (revisions, drafts, points, ratings, audit trail) as it is in one snapshot into a
new folder; eval sets, logs and outcome models are plain folders that you copy yourself.

example:
  hydra-router backup backups/2026-11-25
"""
_RESTORE = """bring a backup back
Brings a backup back into a workspace that has no store yet; nothing is overwritten.

example:
  HYDRA_WORKSPACE=fresh hydra-router restore backups/2026-11-25
"""
_FORMATS = ("hydra", "litellm", "vllm")


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "publish", _publish, _PUBLISH, "PUBLISH")
    parser.option("catalog", "CATALOG", "name in the workspace, or a YAML file", type=CATALOG.find)
    parser.option("--as", "NAME", "default: the file's name", dest="name")
    parser.add_argument("--note", default="", help="why")
    said = "measure it there first (name in the workspace, or a folder)"
    parser.option("--evalset", "SET", said, type=EVALSET.find)
    parser = verb(verbs, "history", _history, _HISTORY)
    parser.option("name", "NAME", nargs="?")
    parser = verb(verbs, "diff", _diff, _DIFF)
    parser.option("name", "NAME")
    parser.option("one", "REVISION", nargs="?")
    said = "another revision, a name in the workspace, or a YAML file"
    parser.option("other", "REVISION|CATALOG", said, nargs="?")
    parser = verb(verbs, "rollback", _rollback, _ROLLBACK, "ROLL_BACK")
    parser.option("name", "NAME")
    parser.option("revision", "REVISION", type=int)
    parser.add_argument("--note", default="", help="why")
    parser = verb(verbs, "export", _export, _EXPORT, "WRITE")
    parser.option("name", "NAME")
    parser.add_argument("--as", dest="form", choices=_FORMATS, default="hydra")
    parser.option("--out", "FILE", type=Path, required=True)
    parser = verb(verbs, "backup", _backup, _BACKUP, "PUBLISH")
    parser.option("folder", "DIR", type=Path)
    parser = verb(verbs, "restore", _restore, _RESTORE, "PUBLISH")
    parser.option("folder", "DIR", type=Path)


def _newest(name: str) -> tuple[Store, Revision]:
    """The store, and the newest revision of a name as `serve` takes it: itself, else my/NAME."""
    from hydra_core.store import open_store

    store = open_store()
    name = name.removeprefix("store:")
    revision = store.newest(_meant(store, name))
    if revision is None:
        known = ", ".join(store.catalogs()) or "nothing yet"
        raise CannotRunError(f"{name!r} is not published; published: {known}")
    if revision.catalog == name and store.newest(f"my/{name}") is not None:
        say(f"note: this is {name}, which store:{name} names too; my/{name} is another catalog")
    return store, revision


def _meant(store: Store, name: str) -> str:
    """What `serve --catalog store:NAME` follows: the catalog of this name, else my/NAME."""
    own = f"my/{name}"
    return own if store.newest(name) is None and store.newest(own) is not None else name


def _publish(options: argparse.Namespace) -> None:
    from hydra_core.catalog.schema import read_catalog_text
    from hydra_core.export.release import without_header
    from hydra_core.store import open_store

    path = existing(options.catalog)
    store = open_store()
    own = CATALOG.name_of(path)
    if options.name is None and own:
        name = f"my/{own}"
    else:
        name = _meant(store, (options.name or path.stem).removeprefix("store:"))
    if name == f"my/{own}" and store.newest(own) is not None:
        say(f"note: this is {name}; store:{own} names {own}, which is another catalog")
    newest = store.newest(name)
    revision = store.publish(
        name, without_header(read_catalog_text(path)), actor=acting(), note=options.note,
        base_revision=0 if newest is None else newest.number, metrics=_metrics(options, path),
    )  # fmt: skip
    _say_unreachable(revision)
    show(options, _shown(revision), f"{name}: revision {revision.number} is published")


def _say_unreachable(revision: Revision) -> None:
    """Warn of an outcome model that a service in this workspace would not find."""
    from hydra_core.catalog.schema import parse_catalog
    from hydra_core.outcome_model.format import catalog_outcome_model

    catalog = parse_catalog(revision.yaml, source=revision.catalog)
    try:
        if catalog.outcome_model is not None:
            catalog_outcome_model(catalog)
    except HydraError as error:
        say(f"warning: serve cannot take revision {revision.number} yet: {error}")


def _metrics(options: argparse.Namespace, path: Path) -> dict[str, Any]:
    """What the catalog's own policy does on the set that was named; {} without one."""
    if options.evalset is None:
        return {}
    from hydra_core.base.types import Rule, SuccessSource
    from hydra_core.catalog import load_catalog
    from hydra_core.cli.score import scores_for, vectors_for
    from hydra_core.evalsets.folders import evalset_info
    from hydra_core.export.release import measured, unknown_text
    from hydra_core.replay.compare import replay_policy
    from hydra_core.replay.sweep import Sweep, sweep_catalog, sweep_own_value

    catalog, evalset, today = load_catalog(path), open_evalset(options.evalset), date.today()
    sweep: Sweep
    if catalog.policy.rule is Rule.VALUE:
        by_heads = catalog.success_source is SuccessSource.OUTCOME_MODEL
        (vectors_for if by_heads else scores_for)(evalset, catalog, None)
        sweep = sweep_own_value(evalset, catalog, cross_fitted=True, today=today)
    else:
        scores = scores_for(evalset, catalog, None)
        sweep = sweep_catalog(evalset, catalog, scores, catalog.policy.weights, today=today)
    found = replay_policy(catalog, sweep)
    if unmeasured := unknown_text(found):
        say(f"warning: {unmeasured}")
    return measured(found, evalset_info(evalset.path.resolve()))


def _shown(revision: Revision) -> dict[str, Any]:
    return {
        "catalog": revision.catalog,
        "revision": revision.number,
        "digest": revision.digest,
        "author": revision.author,
        "note": revision.note,
        "at": revision.created_at.isoformat(),
        "restores": revision.restores,
        "metrics": dict(revision.metrics),
    }


def _history(options: argparse.Namespace) -> None:
    from hydra_core.store import open_store

    if options.name is None:
        published = open_store().catalogs()
        if options.json:
            print_json({"published": published})
        elif not published:
            say("nothing is published yet")
        else:
            print("\n".join(f"{name}  revision {number}" for name, number in published.items()))
        return
    store, newest = _newest(options.name)
    found = store.history(newest.catalog, limit=newest.number)
    marks = {one.number: f" (revision {one.restores} again)" for one in found if one.restores}
    changed = {number for name, number in store.changed_revisions() if name == newest.catalog}
    for number in changed:
        marks[number] = marks.get(number, "") + " (its text was changed outside HyDRA)"
    lines = [
        f"{one.number:>4}  {one.created_at:%Y-%m-%d %H:%M} UTC  {one.author}  "
        f"{' '.join(one.note.split())}{marks.get(one.number, '')}".rstrip()
        for one in found
    ]
    shown = [{**_shown(one), "changed_outside": one.number in changed} for one in found]
    show(options, {"revisions": shown}, "\n".join(lines))


def _diff(options: argparse.Namespace) -> None:
    from hydra_core.catalog.diff import semantic_diff

    store, newest = _newest(options.name)
    if options.one is None and newest.number == 1:
        raise CannotRunError(f"{newest.catalog} has one revision; name a file: diff NAME 1 FILE")
    one = options.one or str(newest.number - 1)
    other = options.other or str(newest.number)
    name = newest.catalog
    changes = semantic_diff(_catalog(store, name, one), _catalog(store, name, other))
    document = [
        {"kind": c.kind.value, "subject": c.subject, "before": c.before, "after": c.after}
        for c in changes
    ]
    text = "\n".join(map(str, changes)) or f"{name}: {one} and {other} do the same"
    show(options, {"changes": document}, text)


def _catalog(store: Store, name: str, which: str) -> Catalog:
    """A revision by its number, or a file."""
    from hydra_core.catalog import load_catalog
    from hydra_core.catalog.schema import parse_catalog

    if which.isdecimal():
        return parse_catalog(store.revision(name, int(which)).yaml, source=f"{name} {which}")
    return load_catalog(existing(CATALOG.find(which)))


def _rollback(options: argparse.Namespace) -> None:
    store, newest = _newest(options.name)
    kept = store.revision(newest.catalog, options.revision)
    made = store.roll_back(
        newest.catalog, options.revision, actor=acting(), base_revision=newest.number,
        note=options.note, metrics=kept.metrics,
    )  # fmt: skip
    same = f"revision {made.number} is published; it equals revision {options.revision}"
    show(options, _shown(made), f"{made.catalog}: {same}")


def _export(options: argparse.Namespace) -> None:
    from hydra_core.catalog.schema import parse_catalog
    from hydra_core.export.litellm import litellm_config
    from hydra_core.export.release import provenance
    from hydra_core.export.vllm_semantic_router import vllm_semantic_router_config

    _, revision = _newest(options.name)
    if CATALOG.name_of(options.out) and options.out.exists():
        raise CannotRunError(f"{options.out} is a catalog of the workspace; choose another --out")
    catalog = parse_catalog(revision.yaml, source=revision.catalog)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.form == "hydra":
        facts = provenance(
            revision, revision.metrics, author=revision.author, note=revision.note,
            now=datetime.now(UTC),
        )  # fmt: skip
        notes = _write_release(options.out, revision.yaml, catalog, facts)
    else:
        write = litellm_config if options.form == "litellm" else vllm_semantic_router_config
        made = write(catalog)
        options.out.write_text(made.text, encoding="utf-8")
        notes = made.not_expressed
    if options.json:
        print_json({"file": str(options.out), "revision": revision.number, "not_said": notes})
        return
    print(f"{options.out}: revision {revision.number} of {revision.catalog}")
    for note in notes:
        say(f"not in it: {note}")


def _write_release(out: Path, text: str, catalog: Catalog, facts: Provenance) -> tuple[str, ...]:
    """Write the release, with its outcome model into a zip; what is not in the file, in words."""
    from hydra_core.export.release import release_archive, release_text, write_release

    if out.suffix != ".zip":
        write_release(out, release_text(text, facts))
        named = catalog.outcome_model
        return (
            () if named is None else (f"the outcome model {named.path}; for both, --out FILE.zip",)
        )
    if catalog.outcome_model is None:
        raise CannotRunError(f"{out}: this release is one YAML file; give --out FILE.yaml")
    out.write_bytes(release_archive(text, catalog, facts, out.stem))
    return ()


def _backup(options: argparse.Namespace) -> None:
    if options.folder.exists() and any(options.folder.iterdir()):
        raise CannotRunError(f"{options.folder} is not empty; name a new folder")
    with closing(_own_store()) as store:
        options.folder.mkdir(parents=True, exist_ok=True)
        with closing(store.copied_to(options.folder)) as copy:
            found = _whole(copy, "the copy")
    facts = {"folder": str(options.folder), "audit_records": found.entries, "head": found.head}
    text = f"{options.folder}: {found.entries} audit records, whole; newest digest\n{found.head}"
    show(options, facts, text)


def _restore(options: argparse.Namespace) -> None:
    from hydra_core.store import open_store

    if os.environ.get("HYDRA_DATABASE_URL"):
        raise CannotRunError(
            "HYDRA_DATABASE_URL is set, and a backup is brought back into a workspace's own file: "
            "unset it first"
        )
    if not (existing(options.folder) / DATABASE).is_file():
        raise CannotRunError(f"{options.folder} is no backup: it has no file {DATABASE}")
    target = workspace_folder()
    with closing(open_store(options.folder)) as saved:
        found, published = _whole(saved, "the backup"), saved.catalogs()
        with closing(open_store(target)) as fresh:
            if not fresh.empty:
                raise CannotRunError(
                    f"{target} has a store already; set HYDRA_WORKSPACE to a new folder"
                )
        saved.copied_to(target).close()
    document = {"workspace": str(target), "published": published, "head": found.head}
    names = ", ".join(published) or "nothing"
    text = f"{target}: {found.entries} audit records, whole; published: {names}"
    show(options, document, text)


def _own_store() -> Store:
    """The store of the workspace; refused where it has none yet."""
    from hydra_core.store import open_store

    if not has_store():
        where = workspace_folder()
        raise CannotRunError(f"{where} has no store; set HYDRA_WORKSPACE to the workspace")
    return open_store()


def _whole(store: Store, what: str) -> TrailCheck:
    """Check every audit record and revision of a store; HydraError names a fault."""
    found = store.check_audit()
    if found.fault:
        raise HydraError(f"{what}'s audit trail is not whole: {found.fault}")
    if changed := store.changed_revisions():
        listed = ", ".join(f"{name} {number}" for name, number in changed)
        raise HydraError(f"{what} is damaged: revisions changed outside HyDRA: {listed}")
    return found


_VERIFY = """name the first record that was changed or is missing
Reads the whole audit trail of the workspace's store (or of HYDRA_DATABASE_URL). Every record holds
the digest of the one before. If a record was changed or is missing, the first such record is named
and the exit code is 2. Whoever can write the database can also rewrite the whole trail: keep the
printed digest somewhere else, and pass it next time with --kept.

examples:
  hydra-router audit verify
  hydra-router audit verify --kept 4c1f...
"""


def add_audit(verbs: Verbs) -> None:
    parser = verb(verbs, "verify", _verify, _VERIFY)
    parser.option("--kept", "DIGEST", "a digest you noted earlier")


def _verify(options: argparse.Namespace) -> int:
    kept = options.kept
    if kept is not None and not SHA256.fullmatch(kept := kept.strip().lower()):
        wrong = f"must be a digest of 64 hexadecimal digits, got {options.kept!r}"
        raise ProblemsError.of("audit verify", wrong, "give it as it was printed", place="--kept")
    with closing(_own_store()) as store:
        trail, where = store.check_audit(kept or ""), store.where
    records = f"{trail.entries:,} record{'s' * (trail.entries != 1)}"
    if options.json:
        facts = {"entries": trail.entries, "head": trail.head, "fault": trail.fault or None}
        print_json({"whole": not trail.fault, **facts})
    elif trail.fault:
        say(f"{where}: {trail.fault}; {records} before that fit together")
    elif not trail.entries:
        print(f"{where}: no records yet")
    else:
        print(f"{where}: {records}, unchanged; the newest has digest\n{trail.head}")
    return 2 if trail.fault else 0
