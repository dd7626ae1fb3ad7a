"""What a hub says of the person behind a session: who it is, which data sets they may know of, what is spent and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cloister.client.plan import guarantee_from
from cloister.client.transport import Transport, no_answer
from cloister.errors import CloisterError, InvalidParameter
from cloister.privacy import Guarantee, zero_of
from cloister.session.questions.spend import amount_of, less
from cloister.tables import Domain
from cloister.tables.declaring.plain import domain_of

_PAGE = "100"


@dataclass(frozen=True, kw_only=True)
class RemoteTable:
    """A data set as the hub's catalogue shows it: its public declaration, and no row.

    >>> RemoteTable(name="people", columns={}, population="people")
    <people: 0 columns, of the population 'people'>
    """

    name: str
    columns: Mapping[str, Domain]
    title: str = ""
    about: str = ""
    unit: str | None = None
    max_rows: int | None = None
    size: int | None = None
    population: str | None = None
    """None: a public table, which has no budget."""

    @property
    def public(self) -> bool:
        """Whether it protects nobody."""
        return self.population is None

    def __repr__(self) -> str:
        whose = "public" if self.population is None else f"of the population {self.population!r}"
        return f"<{self.name}: {len(self.columns)} columns, {whose}>"


class RemoteBalance:
    """The side of a session that asks nothing about rows."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._who = ""

    @property
    def who(self) -> str:
        """The person as the ledger writes them."""
        if not self._who:
            self._who = str(self._transport.get("/me").get("email", ""))
        return self._who

    @property
    def tables(self) -> dict[str, RemoteTable]:
        """The data sets that this person may know of, with their declarations."""
        return {each["name"]: _table(each) for each in self._all("/datasets")}

    @property
    def spent_by(self) -> dict[str, Guarantee]:
        """What has been spent of each population's budget, where this person may see it."""
        return {population: spent for population, (_, spent) in self._money().items()}

    @property
    def spent(self) -> Guarantee:
        """What has been spent; with several populations, of the one that has spent most."""
        return max(_some(self.spent_by), key=amount_of)

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of each population's budget, where this person may see it."""
        return {name: less(budget, spent) or zero_of(budget) for name, (budget, spent) in self._money().items()}

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The populations of which something left without a guarantee: what is known of those, no number bounds."""
        return tuple(dict.fromkeys(str(each["population"]) for each in self._all("/datasets") if each.get("unbounded")))

    @property
    def remaining(self) -> Guarantee:
        """What is left; with several populations, of the one that has least."""
        return min(_some(self.remaining_by), key=amount_of)

    def _money(self) -> dict[str, tuple[Guarantee, Guarantee]]:
        """Budget and spending by population, as the data sets tell them."""
        return {
            str(each["population"]): (guarantee_from(each["budget"]), guarantee_from(each["spent"]))
            for each in self._all("/datasets")
            if each.get("population") and each.get("budget") and each.get("spent")
        }

    def _all(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Every entry of a list that comes in pages."""
        after, seen = "", set[str]()
        while after not in seen:
            seen.add(after)
            page = self._transport.get(path, limit=_PAGE, **({"after": after} if after else {}))
            yield from page["items"]
            after = page.get("next") or ""
            if not after:
                return
        raise no_answer("its list never ends")


def _table(told: Mapping[str, Any]) -> RemoteTable:
    name, declaration = str(told["name"]), told.get("declaration") or {}
    columns = declaration.get("columns") or {}
    return RemoteTable(
        name=name,
        title=str(told.get("title", "")),
        about=str(told.get("about", "")),
        columns={column: domain_of(column, declared, table=name) for column, declared in columns.items()},
        unit=declaration.get("unit"),
        max_rows=declaration.get("max_rows"),
        size=declaration.get("size"),
        population=told.get("population") or None,
    )


def _some(costs: Mapping[str, Guarantee]) -> list[Guarantee]:
    if not costs:
        raise _no_budget()
    return list(costs.values())


def _no_budget() -> CloisterError:
    return InvalidParameter(
        "The session's spending was asked for", why="no budget is open to this person", instead="session.tables"
    )
