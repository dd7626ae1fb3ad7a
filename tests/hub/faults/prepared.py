"""A hub's folder that is ready for load: people with tokens, one open data set, and a budget for so many questions.

It is made in this process and closed; the hub that is then loaded, killed and looked at is a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from cloister.hub import services
from cloister.hub.hub import Hub
from cloister.hub.ids import digest
from cloister.hub.records.accounts import ApiToken
from cloister.hub.settings import Settings
from cloister.privacy import PureDP
from tests.hub.house import House

COST = "0.001"
SET = "people"


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A folder, who may ask there, and for how many questions the budget pays."""

    folder: Path
    tokens: tuple[str, ...]
    pays_for: int
    database: str = ""
    """Of hub and ledger; empty: files in the folder."""

    @property
    def settings(self) -> Settings:
        """As the processes have them."""
        return Settings(data=self.folder, database=self.database, ledger=self.database, workers=0)

    @property
    def budget(self) -> PureDP:
        """What was opened for the people."""
        return PureDP(Fraction(COST) * self.pays_for)

    @contextmanager
    def opened(self, later: float = 0.0) -> Iterator[Hub]:
        """The hub in this process, to look at; its clock is so many seconds ahead."""
        with Hub(self.settings, services.all_services(), clock=lambda: time.time() + later) as hub:
            yield hub


def prepare(folder: Path, *, people: int = 50, pays_for: int = 1000, rows: int = 300, database: str = "") -> Prepared:
    """Make it."""
    from tests.hub.house import people_rows

    house = House(folder, time.time, database=database, ledger=database)  # type: ignore[arg-type]
    try:
        owner = house.person("owner")
        first = house.person("analyst")
        analysts = [first, *(house.person("analyst") for _ in range(people - 1))]
        budget = PureDP(Fraction(COST) * pays_for)
        house.sample_data_set(SET, owner=owner, rows=people_rows(rows), budget=budget, readers=analysts)
        with house.hub.database.begin() as db:
            for analyst in analysts:
                row = db.query(ApiToken).filter(ApiToken.digest == digest(analyst.token)).one()
                row.used = house.hub.now()
    finally:
        house.close()
    return Prepared(folder=folder, tokens=tuple(each.token for each in analysts), pays_for=pays_for, database=database)
