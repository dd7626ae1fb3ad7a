"""What a statement does, for both protocols: blocking calls, made from threads.

Planning, declaring and describing never spend; only a question that runs under a spend does, once. How it is asked is what is set
when it runs.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from cloister.pgwire.backend import FreeAnswer, PgSession, Tables
from cloister.pgwire.catalogue.declared import Facts
from cloister.pgwire.catalogue.sandbox import Catalogue
from cloister.pgwire.failures import Refused
from cloister.pgwire.portals import Columns, Portal, Prepared, Store, types_of
from cloister.pgwire.reading import read
from cloister.pgwire.results import PLAN, Column, Result, Source, columns_of_shape, of_free, of_plan, of_release, of_texts
from cloister.pgwire.routing import Route, route, set_configs, typed, without_rows
from cloister.pgwire.statements import (
    Close,
    Copy,
    Deallocate,
    Declare,
    Discard,
    Execute,
    Explain,
    Fetch,
    Prepare,
    Reset,
    Select,
    Set,
    Show,
    Statement,
    Transaction,
)
from cloister.pgwire.variables import VERSION, Variables, spelled
from cloister.pgwire.words import statements
from cloister.tables import PrivateTable, PublicTable
from cloister.tables.expression.names import alias, quoted, quoted_path

UNSPENT = "SET cloister.spend = '0.1'"
_FREE = ("preparing the tables", "reserving the cost")
"""The stages of a question before which nothing is charged."""


def version() -> str:
    """What version() answers: clients read the number of the PostgreSQL that they may expect.

    >>> version().startswith("PostgreSQL 15.0 (cloister ")
    True
    """
    from cloister.installed import edition

    return f"PostgreSQL {VERSION} (cloister {edition()})"


class Executor:
    """One connection's statements."""

    def __init__(self, session: PgSession, variables: Variables, store: Store, *, user: str, database: str) -> None:
        self._session, self.variables, self.store = session, variables, store
        self.user, self._database = user, database
        self._catalogue: Catalogue | None = None
        self._given_up = False
        self.several = False
        """Whether the message that is worked on holds several statements: they are one transaction."""

    def private(self, statement: Statement) -> bool:
        """Whether a statement goes to the door, which may take its time."""
        self._check_state(statement)
        statement = self._meant(statement)
        if isinstance(statement, Fetch):
            portal = self.store.portals.cursor(statement.name)
            return portal.rows is None and portal.statement is not None and self.private(portal.statement)
        question = statement.question if isinstance(statement, Explain | Copy) else statement
        return isinstance(question, Select) and self._route(question).private

    def columns(self, statement: Statement) -> Columns:
        """The columns that a statement will give; None where it gives no rows."""
        self._check_state(statement)
        statement = self._meant(statement)
        if isinstance(statement, Show):
            return self._show(statement).columns
        if isinstance(statement, Explain):
            return (Column(name=PLAN.name, kind="json"),) if statement.json else (PLAN,)
        if isinstance(statement, Fetch):
            portal = self.store.portals.cursor(statement.name)
            return None if statement.move else portal.columns or (portal.told[0] if portal.told else None)
        if not isinstance(statement, Select):
            return None
        found = self._route(statement)
        if not found.private:
            return self._catalogue_now().columns(set_configs(statement)[0].text)
        check_not_public_alone(found.named, self._session.tables())
        how = self.variables.asking()
        return columns_of_shape(self._session.shape(found.text, how), margins=how.margins)

    def prepared(self, text: str, given: Sequence[int]) -> Prepared:
        """A text that was sent to be prepared; parameters whose types were left open get those of their columns."""
        found = statements(text)
        if len(found) > 1:
            raise Refused("The statement is invalid", why="it is several", instead="one after the other", code="42601")
        if not found:
            return Prepared("", (), None, tuple(given))
        own, words = found[0]
        statement = read(own, words)
        return Prepared(own, tuple(words), statement, self._typed(statement, types_of(words, given)))

    def told(self, statement: Statement | None) -> tuple[Columns, bool]:
        """The columns that a client is promised, and whether margins are asked for now."""
        return None if statement is None else self.columns(statement), self.variables.asking().margins

    def run(self, statement: Statement) -> Result:
        """Does what a statement says."""
        self._given_up = False
        return self._run(statement)

    def open(self, portal: Portal) -> tuple[str, ...]:
        """Runs a portal and gives its notices; of one that ran before, checks that its rows may still be given."""
        self._given_up = False
        return self._open(portal)

    def end(self, *, commit: bool) -> None:
        """A message, or all up to a Sync, is done: outside a transaction, what it made ends with it."""
        if self.variables.state == "I":
            self.store.portals.end(commit=commit)

    def interrupt(self) -> None:
        """Ends a catalogue query that runs, and a question before its charge; one that is charged goes on, since that stands."""
        self._given_up = True
        if self._catalogue is not None:
            self._catalogue.interrupt()

    def close(self) -> None:
        """The connection ended."""
        try:
            if self._catalogue is not None:
                self._catalogue.close()
        finally:
            self._session.close()

    # ── each kind of statement ───────────────────────────────────────────────────────────────────

    def _run(self, statement: Statement) -> Result:
        self._check_state(statement)
        match self._meant(statement):
            case Select() as question:
                return self._select(question)
            case Explain(Select() as question, json):
                return self._explain(question, as_json=json)
            case Set(name, value, local):
                self.variables.set(name, value, local=local)
                return Result(tag="SET")
            case Reset("all"):
                self.variables.reset_all()
                return Result(tag="RESET")
            case Reset(name):
                self.variables.set(name, None)
                return Result(tag="RESET")
            case Show() as show:
                return self._show(show)
            case Transaction() as step:
                return self._transaction(step)
            case Declare() as declared:
                return self._declare(declared)
            case Copy(question, how):
                found = self._select(question)
                return replace(found, tag=f"COPY {len(found.rows)}", copy=how)
            case Fetch() as fetch:
                return self._fetch(fetch)
            case Close(name):
                if name is not None:
                    self.store.portals.get(name)
                self.store.portals.close(name)
                return Result(tag="CLOSE CURSOR ALL" if name is None else "CLOSE CURSOR")
            case Prepare(name, given, question):
                types = self._typed(question, types_of(question.words, given))
                self.store.prepare(name, Prepared(question.text, question.words, question, types, by_sql=True))
                return Result(tag="PREPARE")
            case Deallocate(name):
                self.store.forget(name)
                return Result(tag="DEALLOCATE ALL" if name is None else "DEALLOCATE")
            case Discard(what):
                return self._discard(what)
        raise AssertionError(statement)

    def _meant(self, statement: Statement) -> Statement:
        """EXECUTE stands for what was prepared, and what asks for no row of a table for a question of its columns."""
        if isinstance(statement, Select):
            return without_rows(statement, self._session.tables)
        if isinstance(statement, Execute):
            return self.store.executed(statement)
        if isinstance(statement, Explain) and isinstance(statement.question, Execute):
            question = self.store.executed(statement.question)
            if not isinstance(question, Select):
                raise Refused(
                    "EXPLAIN EXECUTE is not supported", why="what was prepared is no question", instead="EXPLAIN SELECT …"
                )
            return Explain(question, statement.json)
        return statement

    def _select(self, question: Select) -> Result:
        found = self._route(question)
        how = replace(self.variables.asking(), progress=self._check_wanted)
        if not found.private:
            told = self._looked_up(question)
            return Result(columns=told.columns, rows=told.rows, tag=told.tag, source=Source("", how))
        check_not_public_alone(found.named, self._session.tables())
        if how.pays or found.calls:
            answer = self._session.ask(found.text, how)
        else:
            repeated = self._session.repeat(found.text, how)
            if repeated is None:
                self._session.shape(found.text, how)  # a question that can't be asked at all is refused for that
                raise Refused(
                    "The question was not asked",
                    why="no spend is set, and there is no default: without one only EXPLAIN and repeats are answered",
                    instead=UNSPENT,
                    code="55000",
                )
            answer = repeated
        source = Source(found.text, how)
        return of_free(answer, source) if isinstance(answer, FreeAnswer) else of_release(answer, how=how, source=source)

    def _check_wanted(self, stage: str) -> None:
        if self._given_up and stage in _FREE:
            raise Refused("The statement was canceled", why="its client gave it up before it was charged", code="57014")

    def _explain(self, question: Select, *, as_json: bool) -> Result:
        found = self._route(question)
        if not found.private:
            self._catalogue_now().columns(found.text)
            lines = ["answered from public declarations, at no cost"]
            return of_texts(PLAN.name, ['["' + lines[0] + '"]'] if as_json else lines, tag="EXPLAIN")
        check_not_public_alone(found.named, self._session.tables())
        how = self.variables.asking()
        plan = self._session.explain(found.text, how)
        return of_plan(plan, as_json=as_json, confidence=how.confidence, example=not how.pays)

    def _declare(self, declared: Declare) -> Result:
        if not declared.hold and self.variables.state == "I" and not self.several:
            raise Refused(
                "DECLARE was refused",
                why="a cursor lives in a transaction, and none has begun",
                instead=f"BEGIN, or DECLARE {declared.name[:63]} CURSOR WITH HOLD FOR SELECT …",
                code="25P01",
            )
        self.store.portals.check_new(declared.name)
        told = self.told(declared.question)
        if not self._given_up:
            portal = Portal(
                declared.question,
                told=told,
                text=declared.text,
                scroll=declared.scroll,
                hold=declared.hold,
                binary=declared.binary,
                depth=self.variables.depth,
            )
            self.store.portals.bind(declared.name, portal)
        return Result(tag="DECLARE CURSOR")

    def _fetch(self, fetch: Fetch) -> Result:
        portal = self.store.portals.cursor(fetch.name)
        word = "MOVE" if fetch.move else "FETCH"
        if portal.rows is None and fetch.step.stays:  # before the first row there is none
            return Result(columns=self.columns(fetch), tag=f"{word} 0")
        notices = self._open(portal)
        if self._given_up:  # nobody hears the rows, so it does not go on behind them
            raise Refused("The step was given up", code="57014")
        rows = portal.fetch(fetch.name, fetch.step)
        return Result(
            columns=None if fetch.move else portal.columns,
            rows=() if fetch.move else rows,
            tag=f"{word} {len(rows)}",
            notices=notices,
            source=portal.source,
            binary=portal.binary,
        )

    def _open(self, portal: Portal) -> tuple[str, ...]:
        assert portal.statement is not None
        self._check_state(portal.statement)
        if portal.rows is not None:
            self._check_source(portal.source)
            return ()
        if portal.failed:
            raise Refused(
                "The cursor was refused",
                why="its question failed, and a cursor runs once",
                instead="CLOSE it and DECLARE it again, or Bind again",
                code="24000",
            )
        self.store.portals.check_room()
        if portal.told is not None and portal.told[1] != self.variables.asking().margins:
            self._check_told(portal.statement, portal.told[0])
        portal.failed = True  # until it has run: what failed, or was given up, never runs again
        result = self._run(portal.statement)
        if self._given_up:
            return ()
        portal.keep(result)
        return result.notices

    def _check_told(self, statement: Statement, told: Columns) -> None:
        """Refuse, before anything is charged, where the client would get other columns than it was promised."""
        if self.columns(statement) != told:
            raise Refused(
                "The statement is not supported",
                why="its columns changed with cloister.margins since they were described",
                instead="DECLARE or prepare it again",
            )

    def _check_source(self, source: Source | None) -> None:
        """Whose token or grant has ended since gets no more rows of what was answered before."""
        if source is None:
            return
        if source.text:
            self._session.check(source.text, source.how)
        else:
            self._session.tables()

    def _discard(self, what: str) -> Result:
        if what == "all":
            if self.variables.state != "I" or self.several:
                raise Refused("DISCARD ALL was refused", why="a transaction is not done", instead="COMMIT", code="25001")
            self.store.portals.close(None)
            self.variables.reset_all()
        if what in ("all", "plans"):
            self.store.forget(None)
        return Result(tag=f"DISCARD {what.upper()}")

    def _show(self, statement: Show) -> Result:
        if statement.name == "all":
            columns = tuple(Column(name=name, kind="text") for name in ("name", "setting", "description"))
            rows = [(name, value, "") for name, value in self.variables.everything()]
            return Result(columns=columns, rows=rows, tag="SHOW")
        return of_texts(spelled(statement.name), [self.variables.get(statement.name)], tag="SHOW")

    def _looked_up(self, question: Select) -> Result:
        """The answer of the catalogue, and the settings that are made beside it."""
        plain, settings = set_configs(question)
        facts = self._facts()
        for each in settings:
            self.variables.set(each.name, each.value, local=each.local)
        return self._catalogue_now().run(plain.text, facts)

    def _transaction(self, statement: Transaction) -> Result:
        variables, portals, tag = self.variables, self.store.portals, statement.tag
        if statement.name and variables.state == "I":
            raise Refused(f"{tag} was refused", why="no transaction has begun", instead="BEGIN", code="25P01")
        match statement.step:
            case "begin":
                variables.begin()
            case "commit" | "rollback":
                committed = variables.finish(commit=statement.step == "commit")
                portals.end(commit=committed)
                if statement.name:
                    variables.begin()
                tag = "COMMIT" if committed else "ROLLBACK"
            case "savepoint":
                variables.mark(statement.name)
            case "release":
                portals.release(variables.release(statement.name))
            case "rollback to":
                portals.back_to(variables.back_to(statement.name))
            case "nothing":
                pass
        return Result(tag=tag)

    def _check_state(self, statement: Statement) -> None:
        ends = isinstance(statement, Transaction) and statement.step in ("commit", "rollback", "rollback to")
        if self.variables.state == "E" and not ends:
            raise Refused(
                "The statement was ignored", why="an earlier one of this transaction failed", instead="ROLLBACK", code="25P02"
            )

    def _route(self, question: Select) -> Route:
        return route(question, self._session.tables())

    def _typed(self, statement: Statement, types: tuple[int, ...]) -> tuple[int, ...]:
        question = statement.question if isinstance(statement, Explain | Declare | Copy) else statement
        if not isinstance(question, Select) or 0 not in types:
            return types
        return typed(question, types, self._session.tables())

    def _facts(self) -> Facts:
        return Facts(
            tables=dict(self._session.tables()),
            user=self.user,
            database=self._database,
            settings=tuple(self.variables.everything()),
            cursors=self.store.cursors(),
            prepared=self.store.listed(),
        )

    def _catalogue_now(self) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = Catalogue(self._facts(), version=version())
        return self._catalogue


def check_not_public_alone(named: Collection[str], tables: Tables) -> None:
    """Refuse a question that names public tables and no private one, with the line of a join in its place.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"town": ["Delft"]}, columns={"town": cl.Category(["Delft"])})
    >>> tables = {"people": people, "towns": cl.PublicTable({"town": ["Delft"], "river": ["Schie"]})}
    >>> check_not_public_alone(["people", "towns"], tables)
    >>> check_not_public_alone(["towns"], tables)
    Traceback (most recent call last):
    cloister.pgwire.failures.Refused: The rows of the public table 'towns' were not given: ...
      Instead: SELECT towns.river, COUNT(*) AS n FROM people JOIN towns ON people.town = towns.town GROUP BY towns.river
    """
    found = [name for name in sorted(tables) if name.lower() in named]
    publics = {name: table.names for name in found if isinstance(table := tables[name], PublicTable)}
    if not found or len(publics) < len(found):
        return
    name = found[0]
    raise Refused(
        f"The rows of the public table {name!r} were not given",
        why="what leaves here are answers about persons, which may join public tables",
        instead=_join(name, publics[name], tables),
    )


def _join(public: str, names: Collection[str], tables: Tables) -> str:
    """A question that uses a public table: by a column that a private table has too, where there is one."""
    private = {name: table for name, table in tables.items() if isinstance(table, PrivateTable)}
    ways = [(name, column) for name, table in private.items() for column in table.columns if column in names]
    name, key = min(ways, default=(min(private, default="people"), ""))
    shown = min((each for each in names if each != key), default=key)
    one, other, key = quoted_path(name), quoted_path(public), quoted(key) if key else "…"
    shown, count = f"{other}.{quoted(shown)}", alias("n", [shown])
    return f"SELECT {shown}, COUNT(*) AS {count} FROM {one} JOIN {other} ON {one}.{key} = {other}.{key} GROUP BY {shown}"  # noqa: S608
