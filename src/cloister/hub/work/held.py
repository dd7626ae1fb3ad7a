"""The tables that a decision is made for: it is carried out on these very tables, or not at all, however slow it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from cloister.hub.generation import claim_generation, read_generation
from cloister.hub.problems import Conflict
from cloister.hub.work.facts import Facts, facts_of, known_generation
from cloister.session.state.lineage import SharedRows

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.hub import Hub
    from cloister.query import Session
    from cloister.tables import PrivateTable, PublicTable

_TRIES = 5


class Exchanged(Conflict):
    """The rows are others than those that it was decided for. Nothing was read."""

    stored = "Exchanged"

    def __init__(self) -> None:
        super().__init__(
            "Nothing was read", why="the rows of the data set are being exchanged just now", instead="the same once more"
        )


@dataclass(frozen=True, kw_only=True)
class Held:
    """The tables that a decision is made for."""

    session: Session
    tables: Mapping[str, PrivateTable | PublicTable]
    whole: bool
    """Whether all of them are what their names stood for in the facts that were decided on."""
    found_shared: Callable[[SharedRows], None]
    """Told when their rows turn out to be others' too, just before a charge."""

    def pinned(self) -> AbstractContextManager[object]:
        """Within it this thread reads these tables and no others; refused where they were exchanged since."""
        with ExitStack() as reading:
            now = reading.enter_context(self.session.registry.pinned()).tables
            for name, table in self.tables.items():
                if now.get(name) is not table:
                    raise Exchanged
            if not self.whole:
                raise Exchanged
            return reading.pop_all()


class _Decision(Protocol):
    @property
    def held(self) -> Held: ...


Decided = TypeVar("Decided", bound=_Decision)
Done = TypeVar("Done")


def decided(hub: Hub, decide: Callable[[Db, Facts], Decided]) -> Decided:
    """Decide on the facts of this moment. Where nothing has changed since the last time, all that is asked of the database is
    known, and it is not asked."""
    from cloister.hub.services.catalogue import live_of

    with hub.database.looking(once=True) as connection:
        now = read_generation(connection)
    settled = known_generation(hub) == now and live_of(hub).is_of(now)
    with hub.database.reading(late=settled) as db:
        if settled:
            claim_generation(db, now)
        return decide(db, facts_of(hub, db))


def steadily(decide: Callable[[], Decided], act: Callable[[Decided], Done]) -> tuple[Decided, Done]:
    """Do what is decided on the tables that it was decided for; where they were exchanged in between, it is decided again."""
    for _ in range(_TRIES):
        try:
            found = decide()
            try:
                with found.held.pinned():
                    return found, act(found)
            except SharedRows as error:
                found.held.found_shared(error)
                raise
        except Exchanged:
            continue
    raise Exchanged
