"""Work that is ordered now and done as a job: looked at before it is taken, charged once over all its attempts, and kept with its
audit entry and the end of its job in one transaction.

What a killed process had begun is begun once more, by itself, under what it had charged (`attempts.py`). It is decided again:
whoever was blocked or lost a grant meanwhile gets nothing, and the charge stands. An order has one release at most. What died
twice has failed; its charge stands too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cloister.errors import CloisterError, LedgerError
from cloister.hub.ids import new_id
from cloister.hub.labels import check_purpose, check_title
from cloister.hub.policy import write_policy
from cloister.hub.records.releases import StoredRelease
from cloister.hub.service import JobType
from cloister.hub.services.access import under
from cloister.hub.services.jobs import Superseded, caller_of_job, came_of, submit
from cloister.hub.services.trail import write
from cloister.hub.work.attempts import AttemptSession, Charges
from cloister.hub.work.held import steadily
from cloister.hub.work.recheck import check_standing, present
from cloister.hub.work.refusals import note_refusal
from cloister.hub.work.submitting import submit_once, telling

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.releases.kinds import ReleaseKind
    from cloister.hub.service import Progress
    from cloister.hub.work.authorise import Authorised, Words
    from cloister.privacy import Guarantee

_FREE = ("preparing the tables", "reserving the cost")
"""Stages at which a job that is to stop ends: nothing is charged yet that comes after."""


class Order(Protocol):
    """What somebody wants: plain data, which a job keeps."""

    @property
    def purpose(self) -> str:
        """What for."""

    @property
    def project(self) -> str:
        """The id of the project in which; empty: in none."""

    @property
    def algorithm(self) -> str:
        """The algorithm under which; empty: none."""

    @property
    def title(self) -> str:
        """What the release is called."""


Wanted = TypeVar("Wanted", bound=Order)
Found = TypeVar("Found", bound="Authorised")


@dataclass(frozen=True, kw_only=True)
class Product:
    """What was made, and what is kept of it."""

    body: bytes
    cost: Mapping[str, Guarantee | None]
    """The promise that it was made under, by population."""
    details: Mapping[str, Any] = field(default_factory=dict)


class OrderedWork(Protocol[Wanted, Found]):
    """A kind of work as its service says it. Everything else is one for all."""

    job: str
    """The kind of its jobs: stored."""
    title: str
    words: Words
    action: str
    release: ReleaseKind
    stages: dict[str, float]
    """How far it is at each stage that its job tells of."""

    def read(self, told: Mapping[str, Any]) -> Wanted:
        """The order that a job keeps."""

    def told(self, order: Wanted) -> dict[str, Any]:
        """The same as plain data."""

    def about(self, order: Wanted) -> dict[str, Any]:
        """What a refusal says of it in the audit log."""

    def ready(
        self,
        hub: Hub,
        db: Db,
        caller: Caller,
        order: Wanted,
        *,
        progress: Callable[[str], None] | None = None,
        paid: Mapping[str, Guarantee] | None = None,
    ) -> Found:
        """The session that may do it, or the refusal. Nothing is spent and no row is read. `paid`: what attempts before this one
        were charged."""

    def rehearse(self, found: Found) -> None:
        """Refuse what would fail, on made-up rows, before anything is charged."""

    def settled(self, found: Found) -> Wanted:
        """The order, with all that it leaves to others."""

    def run(self, hub: Hub, found: Found, session: Callable[[], AttemptSession]) -> Product:
        """Do it. What `session` gives charges, within the decision's bounds; what is asked for before that is free."""

    def written(self, found: Found) -> dict[str, Any]:
        """What its audit entry says besides."""


def look(hub: Hub, caller: Caller, work: OrderedWork[Wanted, Found], order: Wanted) -> Found:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    with _refusals(hub, caller, work, order):
        check_title(order.title)
        check_purpose(order.purpose)
        with hub.database.reading() as db:
            found = work.ready(hub, db, caller, order)
        work.rehearse(found)
        return found


def submit_order(hub: Hub, caller: Caller, work: OrderedWork[Wanted, Found], key: str, request: bytes, order: Wanted) -> str:
    """Put an order into the queue; the id of its job. From where and how the person came is kept for the policy."""

    def submitted(db: Db, found: Found) -> str:
        payload = {"order": work.told(work.settled(found)), "came": came_of(caller)}
        return submit(db, hub, caller, work.job, payload, purpose=order.purpose)

    return submit_once(hub, caller, key, request, lambda: look(hub, caller, work, order), submitted)


def job_of(work: OrderedWork[Any, Any]) -> JobType:
    """The kind of job that carries its orders out."""
    return JobType(kind=work.job, title=work.title, run=partial(_run, work))


def _run(work: OrderedWork[Any, Any], hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Carry an order out, as long as the person and the token that it was ordered with may; the job's result."""
    tell = telling(progress, work.stages, free=_FREE)
    order, caller = work.read(payload["order"]), caller_of_job(progress, payload)
    charges = Charges(hub, progress)
    with _refusals(hub, caller, work, order, charges):
        tell(_FREE[0])
        with charges.standing(work.words.withheld), hub.database.reading() as db:
            caller = present(hub, db, caller)

        def decide() -> Authorised:
            with charges.standing(work.words.withheld), hub.database.reading() as db:
                found: Authorised = work.ready(hub, db, caller, order, progress=tell, paid=charges.before)
                return found

        def run(found: Authorised) -> Product:
            work.rehearse(found)

            def session() -> AttemptSession:
                tell(_FREE[1])
                return AttemptSession(found.session, charges, tell, list(work.stages)[-2])

            return work.run(hub, found, session)

        found, product = steadily(decide, run)
        tell(list(work.stages)[-1])
        return keep(hub, caller, work, found, product, charges, progress)


def keep(
    hub: Hub,
    caller: Caller,
    work: OrderedWork[Any, Any],
    found: Authorised,
    product: Product,
    charges: Charges,
    progress: Progress,
) -> dict[str, Any]:
    """Keep what was made and end the job, in one transaction: so no order has two releases, and no job ends without its own."""
    order, kind = work.settled(found), work.release
    row = StoredRelease(
        id=new_id(),
        person=caller.id,
        kind=kind.name,
        title=order.title,
        algorithm=order.algorithm,
        data_sets=[each.id for each in found.objects],
        purpose=order.purpose,
        cost={population: str(each) for population, each in product.cost.items()},
        body=product.body,
        policy=write_policy(found.policy),
        created=hub.now(),
        details={"project": order.project, **product.details},
    )
    result, paid = {kind.name: row.id, "href": f"{kind.path}/{row.id}"}, charges.paid
    told: dict[str, Any] = {"columns": found.columns, **work.written(found), **charges.told}
    with hub.database.begin() as db:
        progress.finish(db, result)
        check_standing(hub, db, caller, found)
        db.add(row)
        db.flush()
        how: dict[str, Any] = {"purpose": order.purpose, "cost": paid, "data_sets": list(row.data_sets)}
        told |= under(db, order.algorithm)
        write(db, hub, caller, work.action, kind=kind.trail, object_id=row.id, **how, **told)
    return result


@contextmanager
def _refusals(
    hub: Hub, caller: Caller, work: OrderedWork[Wanted, Any], order: Wanted, charges: Charges | None = None
) -> Iterator[None]:
    """Write down what is refused, with what was charged, as far as the ledger can be asked now."""
    try:
        yield
    except Superseded:  # whoever has it now tells of it
        raise
    except CloisterError as error:
        told = {} if charges is None else charges.told
        try:
            paid = {} if charges is None else charges.paid
        except LedgerError:
            paid = {}
        how: dict[str, Any] = {"kind": work.release.trail, "purpose": order.purpose, "algorithm": order.algorithm, "cost": paid}
        note_refusal(hub, caller, work.action, error, **how, **work.about(order), **told)
        raise
