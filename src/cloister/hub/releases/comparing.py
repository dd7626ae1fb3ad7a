"""A release against the rows that it was made of: exact and not private, an owner's view (`hub/work/owner_view.py`).

Only who owns the data set, and sees the release, has it made and looks at it. It is encrypted, gone after a week, decided again
at each look, and has no file. A kind says what is compared (`AgainstRows`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, CloisterError, InvalidParameter, Missing
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import AgainstRows, ReleaseKind
from cloister.hub.releases.reading import seen_release
from cloister.hub.service import JobType, Progress
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import OrderedWork, submit_order
from cloister.hub.work.owner_view import make_view, seen_view
from cloister.privacy import zero_of
from cloister.session.questions.spend import spend_of
from cloister.stored import Stored
from cloister.tables import Domain, Text

VIEW = "comparison"
"""The kind of owner view."""


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """Which release is to be compared with which rows."""

    release: str
    table: str
    columns: tuple[str, ...]
    purpose: str = ""
    project: str = ""
    algorithm: str = ""
    title: str = ""


class _Comparing(OrderedWork[Comparing, ReadyTable[Comparing]]):
    """Comparisons of the releases of one kind."""

    job, title, action = "release.compare", N_("Comparison with the rows"), "release.compare"
    stages = {"reading the rows": 0.2}  # noqa: RUF012
    stored = Stored(Comparing, "Comparing", "release", "table", "columns", "purpose", without=("project", "algorithm", "title"))
    words = Words(
        name="The comparison",
        invalid=N_("The comparison is invalid"),
        denied=N_("The comparison was denied"),
        withheld=N_("The comparison was not made"),
    )

    def __init__(self, kind: ReleaseKind, against: AgainstRows) -> None:
        self.release, self.against = kind, against

    def about(self, order: Comparing) -> dict[str, Any]:
        return {"release": order.release, "table": order.table[:200]}

    def ready(self, *given: Any, **how: Any) -> ReadyTable[Comparing]:
        hub, db, caller, order = given
        seen_release(hub, db, caller, order.release, kind=self.release.name)
        how |= {"columns": order.columns, "spend": Fraction(1), "action": self.against.action}
        how["charge"] = lambda _, __, budget: zero_of(spend_of(1, budget).whole())
        found: ReadyTable[Comparing] = ready_table(self, *given, **how)
        if found.which.owner != caller.id:
            raise AccessDenied(self.words.denied, why="only the owner of the data set may read the rows", instead="ask them")
        return found

    def run(self, *_: Any) -> NoReturn:
        raise AssertionError("a comparison is no release")

    def unsaid(self, error: CloisterError) -> CloisterError:
        """What failed may follow from the rows."""
        return InvalidParameter(self.words.withheld, why="the rows could not be compared", instead="the rows of the table")


def comparing(hub: Hub, name: str) -> _Comparing:
    """The work that compares releases of a kind."""
    kind = hub.kinds[name]
    if kind.against_rows is None:
        raise Missing("There is no comparison", why="releases of this kind are not compared with rows", instead=kind.path)
    return _Comparing(kind, kind.against_rows)


def owns_sources(db: Db, caller: Caller, row: StoredRelease) -> bool:
    """Whether somebody owns all that a release was made of."""
    owners = db.scalars(select(DataSet.owner).where(DataSet.id.in_(row.data_sets))).all()
    return bool(owners) and set(owners) == {caller.id}


def compare_release(hub: Hub, caller: Caller, row: StoredRelease, key: str) -> str:
    """Have it made; the id of the job."""
    told = row.details
    columns = tuple(told["columns"])
    order = Comparing(release=row.id, table=told["table"], columns=columns, purpose=row.purpose)
    return submit_order(hub, caller, comparing(hub, row.kind), key, f"compare {row.id}".encode(), order)


def seen_comparison(hub: Hub, db: Db, caller: Caller, number: str, kind: ReleaseKind) -> tuple[OwnerView, dict[str, Any]]:
    """A comparison of the caller's own, on a data set that is theirs still, and what was found."""
    none = Missing("There is no such comparison", why="it does not exist, or is not yours", instead=kind.path)
    action = comparing(hub, kind.name).against.action
    return seen_view(hub, db, caller, number, kind=VIEW, action=action, columns=lambda order: order["columns"], missing=none)


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    with hub.database.reading() as db:
        row = db.get_one(StoredRelease, payload["order"]["release"])
    work = comparing(hub, row.kind)

    def find(found: ReadyTable[Comparing]) -> Callable[[], dict[str, Any] | None]:
        name, version = found.which.name, str(getattr(found.table, "version", ""))
        prepared = found.session.registry.row_access(name).prepare()
        progress.tell("reading the rows", 0.2)

        def told() -> dict[str, Any]:
            columns, codes = prepared.declaration.columns, prepared.rows([*found.order.columns])
            parts = work.against.compare(
                row, {name: _decoded(columns[name], codes[name].tolist()) for name in found.order.columns}
            )
            return {"parts": [each for each in parts if each], "version": version, "made_of": str(row.details.get("version", ""))}

        return told

    return make_view(hub, payload, progress, work, kind=VIEW, path=f"{work.release.path}/comparisons", find=find)


def _decoded(domain: Domain, codes: list[Any]) -> list[Any]:
    if isinstance(domain, Text):
        return codes
    known = {code: None if code == domain.null_code else domain.decode(code) for code in set(codes)}
    return [known[code] for code in codes]


COMPARE = JobType(kind=_Comparing.job, title=_Comparing.title, run=_run)
"""For the services whose kinds are compared."""
