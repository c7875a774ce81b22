"""Opens the store's database: SQLite in the workspace, or PostgreSQL; migrates it; transactions.

SQLite runs in WAL mode, so that readers never wait for a writer, with `synchronous=FULL`: a publish
that was acknowledged must be there after a power cut. Every transaction that writes begins with
BEGIN IMMEDIATE, so that two writers queue (up to 30 s) instead of failing half-way.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from hydra_core.base.errors import ExtraError, StoreError
from hydra_core.base.workspace import DATABASE
from hydra_core.store import tables

#: The newest migration; a test holds it to the files in `migrations`.
HEAD: Final = "0005"
#: The schema of the first release: an older one was never released, and is refused.
_FIRST: Final = "0005"
_WAIT_S: Final = 30
#: Where Alembic keeps the migration that a database is at.
_VERSIONS: Final = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
#: Any number, the same in every process: whoever holds it migrates.
_MIGRATION_LOCK: Final = 7_395_264_118


def database_url(workspace: Path, environ: Mapping[str, str] = os.environ) -> sa.URL:
    """HYDRA_DATABASE_URL where it is set, else the workspace's SQLite file; or StoreError."""
    given = environ.get("HYDRA_DATABASE_URL", "")
    if not given:
        return sqlite_url(workspace)
    try:
        url = sa.make_url(given)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise StoreError(
            "HYDRA_DATABASE_URL is not a database URL; write postgresql://user:password@host/name"
        ) from error
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise StoreError(
            f"HYDRA_DATABASE_URL names {url.drivername!r}; only postgresql:// is served. Leave it "
            "unset for a SQLite file in the workspace"
        )
    return url.set(drivername="postgresql+psycopg")


def sqlite_url(workspace: Path) -> sa.URL:
    """The SQLite file of a workspace."""
    return sa.URL.create("sqlite", database=str(workspace / DATABASE))


class Database:
    """A migrated database and its transactions. Safe to share between threads, not over a fork."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self.where = _where(engine.url)
        # A pool that is collected leaves its connections open, and Python 3.13 warns of each.
        weakref.finalize(self, engine.dispose).atexit = False

    @property
    def kind(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engine.dialect.name

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent snapshot; StoreError where the database cannot be read."""
        try:
            with self._engine.connect() as connection:
                if self.kind == "postgresql":
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield connection
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"{self.where} could not be read: {_reason(error)}") from error

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """All of it or nothing: an error inside undoes everything (StoreError of its own)."""
        committing = False
        try:
            with self._engine.connect() as connection:
                writer = connection.execution_options(hydra_write=True)
                with writer.begin() as transaction:
                    yield writer
                    committing = True
                    transaction.commit()
                self._into_the_file(writer)
        except sa.exc.SQLAlchemyError as error:
            outcome = "nothing was changed"
            if committing and self.kind != "sqlite":
                outcome = "the answer to the last step got lost, so look whether it was saved"
            raise StoreError(
                f"{self.where} could not be written, {outcome}: {_reason(error)}"
            ) from error

    def _into_the_file(self, connection: sa.Connection) -> None:
        """Move what was committed from SQLite's -wal into the file itself.

        Whoever copies the file alone then has everything; where a reader is in the way it waits
        for the next write.
        """
        raw = connection.connection.dbapi_connection
        if self.kind == "sqlite" and raw is not None:
            with suppress(sqlite3.OperationalError):
                raw.execute("PRAGMA wal_checkpoint(PASSIVE)").close()


def open_database(url: sa.URL) -> Database:
    """The database at `url`, made where it is not there yet and brought up to date.

    Raises:
        StoreError: It cannot be opened, is not a store, or was made by another version.
    """
    where = _where(url)
    if url.get_backend_name() == "sqlite":
        try:
            Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{where} cannot be made: {error}; set HYDRA_WORKSPACE") from error
    engine = _engine(url)
    try:
        _migrate(engine, where)
    except sa.exc.SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(f"{where} could not be opened: {_reason(error)}") from error
    except StoreError:
        engine.dispose()
        raise
    return Database(engine)


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        try:
            return sa.create_engine(
                url,
                pool_pre_ping=True,
                pool_size=5,
                max_overflow=20,
                # also where the database itself names no encoding (SQL_ASCII)
                connect_args={"connect_timeout": 10, "client_encoding": "utf8"},
            )
        except ModuleNotFoundError as error:
            raise ExtraError("a store in PostgreSQL", "postgres") from error
    engine = sa.create_engine(url, connect_args={"timeout": _WAIT_S}, pool_size=5, max_overflow=40)
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401
    connection.isolation_level = None  # BEGIN is ours: see _begin_sqlite
    latest = time.monotonic() + _WAIT_S
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
        while True:
            try:
                connection.execute(f"PRAGMA {pragma}").close()
                break
            except sqlite3.OperationalError as error:
                # A new file becomes WAL alone in it, and SQLite does not wait for that by itself.
                if "locked" not in str(error) or time.monotonic() > latest:
                    raise
                time.sleep(0.02)


def _begin_sqlite(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("hydra_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _migrate(engine: sa.Engine, where: str) -> None:
    with engine.connect() as connection:
        if _version(connection, where) == HEAD:
            return
    with engine.connect() as connection:
        writer = connection.execution_options(hydra_write=True)
        with writer.begin():
            if engine.dialect.name == "postgresql":
                writer.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            found = _version(writer, where)
            if found is None:
                _make(writer)
            elif found != HEAD:  # another process may have been faster
                _upgrade(writer)


def _version(connection: sa.Connection, where: str) -> str | None:
    """The migration the database is at, None for an empty one."""
    known = sa.inspect(connection).has_table(_VERSIONS.name)
    found = connection.scalar(sa.select(_VERSIONS.c.version_num)) if known else None
    if found is not None and found > HEAD:
        raise StoreError(
            f"{where} was written by a newer version of HyDRA (schema {found}, this one knows "
            f"{HEAD}); update HyDRA or choose another workspace"
        )
    if found is not None and found < _FIRST:
        raise StoreError(
            f"{where} was made by a version of HyDRA before its first release (schema {found}) and "
            "cannot be read. Download your catalogs and exports with that version, move the store "
            "away or set HYDRA_WORKSPACE to another folder, and add the catalogs there"
        )
    return found


def _make(connection: sa.Connection) -> None:
    """The tables of a new store; a test compares them with what the migrations make."""
    tables.metadata.create_all(connection, checkfirst=False)
    connection.execute(tables.audit_head.insert().values(id=1, entries=0, digest=""))
    _VERSIONS.create(connection)
    connection.execute(_VERSIONS.insert().values(version_num=HEAD))


def _upgrade(connection: sa.Connection) -> None:
    """Run the migrations up to the newest. Only an older store pays for importing Alembic."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    folder = str(Path(__file__).parent / "migrations")
    scripts = ScriptDirectory(folder, version_locations=[folder])
    named = {"target_metadata": tables.metadata}  # constraints have names by its convention
    steps = {"fn": lambda now, _: scripts._upgrade_revs(HEAD, now)}
    context = MigrationContext.configure(connection, opts={**named, **steps})
    with Operations.context(context):
        context.run_migrations()


def _where(url: sa.URL) -> str:
    if url.get_backend_name() == "sqlite":
        return f"store {url.database}"
    return f"store {url.host or 'localhost'}/{url.database}"


def _reason(error: sa.exc.SQLAlchemyError) -> str:
    """The driver's own first line, without the statement and its values."""
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
