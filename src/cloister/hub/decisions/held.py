"""The tables that a decision is made for: it is carried out on these very tables, or not at all, however slow it was."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cloister.errors import Conflict
from cloister.query import Session
from cloister.session.state.lineage import SharedRows
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
