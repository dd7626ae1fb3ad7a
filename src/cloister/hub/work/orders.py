"""Work that is ordered now and done as a job: looked at before it is taken, charged once over all its attempts, and kept with its
audit entry and the end of its job in one transaction.

What a killed process had begun is begun once more, by itself, under what it had charged (`attempts.py`). It is decided again:
whoever was blocked or lost a grant meanwhile gets nothing, and the charge stands. An order has one release at most. What died
twice has failed; its charge stands too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, Conflict, LedgerError
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.held import steadily
from cloister.hub.decisions.policy import inherit
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.labels import check_purpose, check_title
from cloister.hub.platform.access import under
from cloister.hub.platform.catalogue import register
from cloister.hub.platform.jobs import Stopped, Superseded, caller_of_job, came_of, submit
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.policies import parts_of
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import ReleaseKind
from cloister.hub.service import JobType, Progress
from cloister.hub.work.attempts import AttemptSession, Charges
from cloister.hub.work.authorise import AuthorisedOrder, Words
from cloister.hub.work.bounds import account_of
from cloister.hub.work.recheck import check_standing, note_refusal, present, withheld
from cloister.hub.work.submitting import submit_once, telling
from cloister.lazily import check_installed
from cloister.privacy import Guarantee
from cloister.session.questions.spend import amount_of
from cloister.stored import Stored
from cloister.tables.sourcing.sources import Source

FREE = {"preparing the tables": 0.1, "reserving the cost": 0.2}
"""Stages at which a job that is to stop ends: nothing is charged yet that comes after. Work that is charged begins with them."""
_PREPARING, _RESERVING = FREE


class Order(Protocol):
    """What somebody wants: plain data, which a job keeps."""

    @property
    def table(self) -> str:
        """The data set that it is about."""

    @property
    def purpose(self) -> str:
        """What for."""

    @property
    def project(self) -> str:
        """The name or the id of the project in which; empty: in none."""

    @property
    def algorithm(self) -> str:
        """The algorithm under which; empty: none."""

    @property
    def title(self) -> str:
        """What the release is called."""


Wanted = TypeVar("Wanted", bound=Order)
Found = TypeVar("Found", bound="AuthorisedOrder[Any]")


@dataclass(frozen=True, kw_only=True)
class NewDataSet:
    """Rows that become a data set in the transaction that keeps the release: public, its maker's own, and under the policies of
    the data set that it was made of."""

    name: str
    about: str
    rows: bytes
    """As Parquet."""
    columns: Collection[str]


@dataclass(frozen=True, kw_only=True)
class Product:
    """What was made, and what is kept of it."""

    body: bytes | Callable[[Source], bytes]
    """Of rows that become a data set: by those rows as they are stored."""
    cost: Mapping[str, Guarantee | None] = field(default_factory=dict)
    """The promise that it was made under, by population."""
    details: Mapping[str, Any] = field(default_factory=dict)
    data_set: NewDataSet | None = None


@dataclass(frozen=True, kw_only=True)
class Running:
    """Work that is being done. Called, it gives the session that charges; what is asked for before that is free."""

    tell: Callable[[str], None]
    stopped: Callable[[], bool]
    session: Callable[[], AttemptSession]

    def __call__(self) -> AttemptSession:
        self.tell(_RESERVING)
        return self.session()


class OrderedWork(ABC, Generic[Wanted, Found]):
    """A kind of work as its service says it. Everything else is one for all."""

    job: str
    """The kind of its jobs: stored."""
    title: str
    words: Words
    action: str
    release: ReleaseKind
    stages: Mapping[str, float]
    """How far it is at each stage that its job reports."""
    stored: Stored[Wanted]
    """An order as a job keeps it."""
    secret: tuple[str, ...] = ()
    """The fields of an order that may hold values of rows: a job keeps them wrapped."""
    extra: str = ""
    """What has to be installed for it."""
    audited: tuple[str, ...] = ()
    """The fields of an order that its audit entry says."""
    marked: bool = False
    """Whether it leaves by the marked door: then it charges nothing, reads rows once the NotPrivate event is written, and is
    stopped at any stage."""

    def read(self, told: Mapping[str, Any]) -> Wanted:
        """The order that a job keeps."""
        return self.stored.made({name: tuple(each) if isinstance(each, list) else each for name, each in told.items()})

    def told(self, order: Wanted) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same as plain data, and what of it is kept wrapped."""
        told = {name: dict(each) if isinstance(each, Mapping) else each for name, each in self.stored.told(order).items()}
        return told, {name: told.pop(name) for name in self.secret}

    def about(self, order: Wanted) -> dict[str, Any]:
        """What a refusal says of it in the audit log."""
        return {"table": order.table[:200], **{name: getattr(order, name) for name in self.audited}}

    @abstractmethod
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
        """The order as a job is to keep it, with all that it leaves to others."""
        return found.order  # type: ignore[no-any-return]

    @abstractmethod
    def run(self, hub: Hub, found: Found, session: Running, /) -> Product:
        """Do it. What `session` gives charges, within the decision's bounds; what is asked for before that is free."""

    def unsaid(self, error: CloisterError) -> CloisterError:
        """A failure behind the marked door, in words that a job may keep: its own may name a value of a row."""
        return error

    def still(self, hub: Hub, db: Db, found: Found) -> None:
        """Refuse, before a charge and in the transaction that would keep what was made, what has changed besides the policy."""

    def written(self, found: Found) -> dict[str, Any]:
        """What its audit entry says besides."""
        return {name: getattr(found.order, name) for name in self.audited}


def look(hub: Hub, caller: Caller, work: OrderedWork[Wanted, Found], order: Wanted) -> Found:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    with _refusals(hub, caller, work, order):
        check_title(order.title)
        check_purpose(order.purpose)
        with hub.database.reading() as db:
            check_installed(work.extra, work.words.withheld)
            found = work.ready(hub, db, caller, order)
            costs = {population: cost for population, cost in found.charges.items() if amount_of(cost) > 0}
            hub.ledger.check(costs, who=account_of(facts_of(hub, db), caller, found.terms.project))
        work.rehearse(found)
        return found


def submit_order(
    hub: Hub, caller: Caller, work: OrderedWork[Wanted, Found], key: str, request: bytes, order: Wanted, *, job: str = ""
) -> str:
    """Put an order into the queue; the id of its job. From where and how the person came is kept for the policy. `job`: where
    another kind of job than the work's own does it."""

    def submitted(db: Db, found: Found) -> str:
        told, secret = work.told(work.settled(found))
        payload = {"order": told, "came": came_of(caller)}
        wrapped = secret if work.secret else None
        return submit(hub, db, caller, job or work.job, payload, secret=wrapped, purpose=order.purpose)

    return submit_once(hub, caller, key, request, lambda: look(hub, caller, work, order), submitted)


def job_of(work: OrderedWork[Any, Any]) -> JobType:
    """The kind of job that carries its orders out."""
    return JobType(kind=work.job, title=work.title, run=partial(_run, work))


def ordered(work: OrderedWork[Wanted, Any], payload: Mapping[str, Any]) -> Wanted:
    """The order of a job."""
    return work.read({**payload["order"], **payload.get("secret", {})})


def _run(work: OrderedWork[Any, Any], hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Carry an order out, as long as the person and the token that it was ordered with may; the job's result."""
    tell = telling(progress, work.stages, free=work.stages if work.marked else FREE)
    order, caller = ordered(work, payload), caller_of_job(progress, payload)
    charges = Charges(hub, progress)
    with _refusals(hub, caller, work, order, charges) as refused:
        tell(_PREPARING)
        check_installed(work.extra, work.words.withheld)  # the worker may be of another installation than the hub
        with charges.standing(work.words.withheld), hub.database.reading() as db:
            caller = present(hub, db, caller)

        def decide() -> AuthorisedOrder[Any]:
            with charges.standing(work.words.withheld), hub.database.reading() as db:
                found: AuthorisedOrder[Any] = work.ready(hub, db, caller, order, progress=tell, paid=charges.before)
                return found

        def run(found: AuthorisedOrder[Any]) -> Product:
            def still() -> None:
                with charges.standing(work.words.withheld), hub.database.reading() as db:
                    check_standing(hub, db, caller, found)
                    work.still(hub, db, found)

            def told(stage: str) -> None:  # nothing is charged of what is marked: it is looked at before each of its stages
                still()
                tell(stage)

            work.rehearse(found)
            session = partial(AttemptSession, found.session, charges, still, partial(tell, list(work.stages)[-2]))
            if not work.marked:
                return work.run(hub, found, Running(tell=tell, stopped=progress.stopped, session=session))
            try:
                return work.run(hub, found, Running(tell=told, stopped=progress.stopped, session=session))
            except Superseded:
                raise
            except CloisterError as error:
                stopped = progress.stopped()  # a search that was told to stop says that it was ended
                refused(error)
                raise (Stopped() if stopped else work.unsaid(error)) from None

        found, product = steadily(decide, run)
        tell(list(work.stages)[-1])
        return keep(hub, caller, work, found, product, charges, progress)


def keep(
    hub: Hub,
    caller: Caller,
    work: OrderedWork[Any, Any],
    found: AuthorisedOrder[Any],
    product: Product,
    charges: Charges,
    progress: Progress,
) -> dict[str, Any]:
    """Keep what was made and end the job, in one transaction: so no order has two releases, and no job ends without its own."""
    order, kind, number, paid = work.settled(found), work.release, new_id(), charges.paid
    row = StoredRelease(
        id=number,
        person=caller.id,
        kind=kind.name,
        title=order.title,
        algorithm=order.algorithm,
        data_sets=[each.id for each in found.objects],
        purpose=order.purpose,
        cost={population: str(each) for population, each in product.cost.items()},
        body=product.body if isinstance(product.body, bytes) else b"",
        policy=found.policy.to_dict(),
        created=hub.now(),
        details={"project": found.terms.project, **product.details},
    )
    result = ({} if product.data_set else {kind.name: number}) | {"href": f"{kind.path}/{number}"}
    told: dict[str, Any] = {"columns": found.columns, **work.written(found), **charges.told}

    def add(db: Db, *more: str) -> None:
        db.add(row)
        db.flush()
        how: dict[str, Any] = {"purpose": order.purpose, "cost": paid, "data_sets": [*row.data_sets, *more]}
        how |= told | under(db, order.algorithm)
        write(hub, db, caller, work.action, kind=kind.trail, object_id=number, **how)

    if product.data_set is not None:
        _register(hub, caller, work, found, product, product.data_set, row, lambda db: progress.finish(db, result), add)
        return result
    with hub.database.begin() as db:
        progress.finish(db, result)
        with charges.standing(work.words.withheld):
            check_standing(hub, db, caller, found)
            work.still(hub, db, found)
        add(db)
    return result


def _register(
    hub: Hub,
    caller: Caller,
    work: OrderedWork[Any, Any],
    found: AuthorisedOrder[Any],
    product: Product,
    wanted: NewDataSet,
    row: StoredRelease,
    finish: Callable[[Db], None],
    add: Callable[[Db, str], None],
) -> None:
    """Keep it in the transaction of the data set that its rows become: neither is ever there without the other. What was deleted,
    given to another or forbidden while the rows were worked on stays here."""
    order, make = work.settled(found), product.body

    def still(db: Db) -> AuthorisedOrder[Any]:
        try:
            now: AuthorisedOrder[Any] = work.ready(hub, db, present(hub, db, caller), order)
            return now
        except Conflict:  # of a name that is taken by now
            raise
        except CloisterError as error:
            why = f"{error.why}, after the request was submitted; the population stays marked as unbounded"
            raise withheld(work.words.withheld, why, error) from None

    def looked(source: Source) -> None:
        row.body = make if isinstance(make, bytes) else make(source)

    def along(db: Db, made: DataSet, version: DataSetVersion) -> None:
        finish(db)
        now = still(db)
        if now.policy != again.policy:
            raise Conflict(work.words.withheld, why="its data set is being changed just now", instead="the same once more")
        row.policy, row.digest = inherit([found.policy, now.policy]).to_dict(), version.digest
        row.data_set, row.details = made.id, {**row.details, "version": version.id}
        add(db, made.id)

    with hub.database.reading() as db:
        again = still(db)
        source = db.get_one(DataSet, again.objects[0].id)
    given = parts_of(source)
    columns = {name: each for name, each in given.get("columns", {}).items() if name in wanted.columns}
    register(
        hub,
        caller,
        name=wanted.name,
        title=order.title,
        source=[wanted.rows],
        kind="parquet",
        public=True,
        about=wanted.about,
        metadata={"policy": given.get("policy", {}), "columns": columns, "contribution": given.get("contribution", {})},
        provider=source.provider,
        released={"population": source.population or "", "institution": source.institution},
        along=along,
        looked=looked,
    )


@contextmanager
def _refusals(
    hub: Hub, caller: Caller, work: OrderedWork[Wanted, Any], order: Wanted, charges: Charges | None = None
) -> Iterator[Callable[[CloisterError], None]]:
    """Write down what is refused, with what was charged, as far as the ledger can be asked now. What it gives does it at once, of
    what is to leave in other words."""
    noted = list[CloisterError]()

    def refused(error: CloisterError) -> None:
        noted.append(error)
        told = {} if charges is None else charges.told
        try:
            paid = {} if charges is None else charges.paid
        except LedgerError:
            paid = {}
        how: dict[str, Any] = {"kind": work.release.trail, "purpose": order.purpose, "algorithm": order.algorithm, "cost": paid}
        note_refusal(hub, caller, work.action, error, **{**how, **work.about(order), **told})

    try:
        yield refused
    except Superseded:  # whoever has it now says so
        raise
    except CloisterError as error:
        if not noted:
            refused(error)
        raise
