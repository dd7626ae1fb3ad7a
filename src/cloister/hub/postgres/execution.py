"""What a statement does, for both protocols: blocking calls, made from threads.

Planning and describing never spend; only `run` of a question under a spend does, once.
"""

from __future__ import annotations

from collections.abc import Callable

from cloister.hub.postgres.backend import PgSession
from cloister.hub.postgres.catalogue.declared import Facts
from cloister.hub.postgres.catalogue.sandbox import Catalogue
from cloister.hub.postgres.failures import Refused
from cloister.hub.postgres.publics import check_not_public_alone
from cloister.hub.postgres.results import PLAN, Column, Result, columns_of_shape, of_plan, of_release, of_texts
from cloister.hub.postgres.routing import Route, SetConfig, route, set_config
from cloister.hub.postgres.statements import Deallocate, Discard, Explain, Reset, Select, Set, Show, Statement, Transaction
from cloister.hub.postgres.variables import VERSION, Variables, known, spelled

__all__ = ["Executor", "version"]

UNSPENT = "SET cloister.spend = '0.1'"


def version() -> str:
    """What version() answers: clients read the number of the PostgreSQL that they may expect.

    >>> version().startswith("PostgreSQL 15.0 (cloister ")
    True
    """
    from cloister.hub.edition import EDITION

    return f"PostgreSQL {VERSION} (cloister {EDITION})"


class Executor:
    """One connection's statements."""

    def __init__(
        self,
        session: PgSession,
        variables: Variables,
        *,
        user: str,
        database: str,
        forget: Callable[[str | None], None],
    ) -> None:
        self._session, self.variables, self._forget = session, variables, forget
        self.user, self._database = user, database
        self._catalogue: Catalogue | None = None

    def private(self, statement: Statement) -> bool:
        """Whether a statement goes to the door, which may take its time."""
        question = statement.question if isinstance(statement, Explain) else statement
        return isinstance(question, Select) and set_config(question) is None and self._route(question).private

    def columns(self, statement: Statement) -> tuple[Column, ...] | None:
        """The columns that a statement will give; None where it gives no rows."""
        self._check_state(statement)
        if isinstance(statement, Show):
            return self._show(statement).columns
        if isinstance(statement, Explain):
            return (Column(name=PLAN.name, kind="json"),) if statement.json else (PLAN,)
        if not isinstance(statement, Select):
            return None
        if set_config(statement) is not None:
            return (Column(name="set_config", kind="text"),)
        found = self._route(statement)
        if not found.private:
            return self._catalogue_now().columns(found.text)
        check_not_public_alone(found.named, self._session.tables())
        margins = self.variables.asking().margins
        return columns_of_shape(self._session.shape(found.text), margins=margins)

    def run(self, statement: Statement) -> Result:
        """Does what a statement says."""
        self._check_state(statement)
        match statement:
            case Select():
                return self._select(statement)
            case Explain():
                return self._explain(statement)
            case Set(name, value, local):
                self.variables.set(name, value, local=local)
                return Result(tag="SET")
            case Reset("all"):
                self.variables.reset_all()
                return Result(tag="RESET")
            case Reset(name):
                self.variables.set(name, None)
                return Result(tag="RESET")
            case Show():
                return self._show(statement)
            case Discard(what):
                if what == "all":
                    self.variables.reset_all()
                if what in ("all", "plans"):
                    self._forget(None)
                return Result(tag=f"DISCARD {what.upper()}")
            case Deallocate(name):
                self._forget(None if name == "all" else name)
                return Result(tag="DEALLOCATE ALL" if name == "all" else "DEALLOCATE")
            case Transaction():
                return self._transaction(statement)

    def interrupt(self) -> None:
        """Ends a catalogue query that runs; a question goes on, since its charge stands."""
        if self._catalogue is not None:
            self._catalogue.interrupt()

    def close(self) -> None:
        """The connection ended."""
        try:
            if self._catalogue is not None:
                self._catalogue.close()
        finally:
            self._session.close()

    def _select(self, question: Select) -> Result:
        setting = set_config(question)
        if setting is not None:
            return self._set_config(setting)
        found = self._route(question)
        if not found.private:
            return self._catalogue_now().run(found.text, self._facts())
        check_not_public_alone(found.named, self._session.tables())
        asking = self.variables.asking()
        if asking.pays:
            answer = self._session.ask(
                found.text,
                asking.spend,
                within=asking.within,
                confidence=asking.confidence,
                purpose=asking.purpose,
                fresh=asking.fresh,
            )
        else:
            repeated = self._session.repeat(found.text)
            if repeated is None:
                self._session.shape(found.text)  # a question that can't be asked at all is refused for that
                raise Refused(
                    "The question was not asked",
                    why="no spend is set, and there is no default: without one only EXPLAIN and repeats are answered",
                    instead=UNSPENT,
                    code="55000",
                )
            answer = repeated
        return of_release(answer, confidence=asking.confidence, margins=asking.margins)

    def _explain(self, statement: Explain) -> Result:
        found = self._route(statement.question)
        if not found.private:
            self._catalogue_now().columns(found.text)
            lines = ["answered from public declarations, at no cost"]
            return of_texts(PLAN.name, ['["' + lines[0] + '"]'] if statement.json else lines, tag="EXPLAIN")
        check_not_public_alone(found.named, self._session.tables())
        asking = self.variables.asking()
        plan = self._session.explain(found.text, asking.spend, within=asking.within, confidence=asking.confidence)
        return of_plan(plan, as_json=statement.json, confidence=asking.confidence, example=not asking.pays)

    def _show(self, statement: Show) -> Result:
        if statement.name == "all":
            columns = tuple(Column(name=name, kind="text") for name in ("name", "setting", "description"))
            rows = [(name, value, "") for name, value in self.variables.everything()]
            return Result(columns=columns, rows=rows, tag="SHOW")
        return of_texts(spelled(statement.name), [self.variables.get(statement.name)], tag="SHOW")

    def _set_config(self, setting: SetConfig) -> Result:
        self.variables.set(setting.name, setting.value, local=setting.local)
        shown = self.variables.get(setting.name) if known(setting.name) else ""
        return of_texts("set_config", [shown], tag="SELECT 1")

    def _transaction(self, statement: Transaction) -> Result:
        variables, tag = self.variables, statement.tag
        match statement.step:
            case "begin":
                variables.begin()
            case "commit" | "rollback":
                tag = "COMMIT" if variables.finish(commit=statement.step == "commit") else "ROLLBACK"
            case "savepoint" | "release" | "rollback to":
                if variables.state == "I":
                    raise Refused(f"{tag} was refused", why="no transaction has begun", instead="BEGIN", code="25P01")
                {"savepoint": variables.mark, "release": variables.release, "rollback to": variables.back_to}[statement.step](
                    statement.name
                )
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

    def _facts(self) -> Facts:
        settings = tuple(self.variables.everything())
        return Facts(tables=dict(self._session.tables()), user=self.user, database=self._database, settings=settings)

    def _catalogue_now(self) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = Catalogue(self._facts(), version=version())
        return self._catalogue
