"""The ledger: budgets and charges, durable and concurrent, in one object.

Charge first, fail closed: `reserve` charges every population named in one immediate transaction, or none; the work then runs;
`settle` makes the charge final and stores the release in one transaction, and only after it returns may a byte of the answer
leave.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter, LedgerError
from cloister.ledger import operations, reading, steps
from cloister.ledger.book import Book
from cloister.ledger.measure import guarantee_of, kind_of
from cloister.ledger.opening import Opened, open_ledger
from cloister.ledger.records import BrokenLine, Charge, Freeze, LedgerRecord, Reservation, StoredRelease
from cloister.ledger.request import Bounds, Request
from cloister.ledger.steps import LastStep
from cloister.ledger.store import Store
from cloister.ledger.writer import Step, Writer, frozen_error, head_unavailable
from cloister.printable import is_text
from cloister.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from dp_accounting import dp_event

_INHERITED: list[object] = []  # connections of a parent process: closing them here would harm the parent


class Ledger:
    """Budgets of populations, and the charges against them.

    `where` is None for a ledger in memory, the path of an SQLite file, or a "postgresql://…" address. `key` (32 bytes, or the
    path of a key file) seals its lines; left out, it is the file `<path>.key`, made with the ledger. `head` is the file that
    the end of the chain is copied to, `<path>.head` when left out. Any number of threads and processes may use one ledger at
    once.

    >>> from cloister.privacy import PureDP
    >>> with Ledger() as ledger:
    ...     budget = ledger.open("people", PureDP(1), who="owner")
    ...     reservation = ledger.reserve({"people": PureDP("0.1")}, who="ada", what="plan-1")
    ...     ledger.settle(reservation, b"the release")
    ...     ledger.remaining("people"), ledger.verify()
    (PureDP(epsilon='0.9'), True)
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | None = None,
        *,
        key: bytes | str | os.PathLike[str] | None = None,
        head: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._arguments = (where, key, head)
        self._clock = clock
        self._begin()

    @property
    def where(self) -> str | os.PathLike[str] | None:
        """Where it was opened; None for one in memory."""
        return self._arguments[0]

    def _begin(self) -> None:
        where, key, head = self._arguments
        self._opened: Opened = open_ledger(where, key=key, head=head, clock=self._clock)
        self._store = self._opened.store
        self._writer = Writer(self._opened)
        self._process = os.getpid()
        self._reader: Store | None = None
        self._reader_turn = self._writer.turn if self._store.memory else threading.RLock()

    # Writing: each method is one step of a batch that is committed durably before the method returns.

    def open(self, population: str, budget: Guarantee | None = None, *, who: str) -> Guarantee:
        """The population's budget: written when it is first opened, and from then on the stored one.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> ledger.open("people", PureDP(1), who="owner"), ledger.open("people", None, who="session")
        (PureDP(epsilon='1'), PureDP(epsilon='1'))
        """
        _check_names(population=population, who=who)
        if budget is not None:
            kind_of(budget)
        result: Guarantee = self._do(lambda book: operations.open_population(book, population, budget, who))
        return result

    def raise_budget(self, population: str, budget: Guarantee, *, who: str, why: str) -> Guarantee:
        """A larger budget, by an act of the owner that stays in the ledger.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.raise_budget("people", PureDP(2), who="owner", why="a second study was approved")
        PureDP(epsilon='2')
        """
        _check_names(population=population, who=who, why=why)
        kind_of(budget)
        result: Guarantee = self._do(lambda book: operations.raise_budget(book, population, budget, who, why))
        return result

    def allot(self, population: str, user: str, share: Guarantee, *, who: str) -> None:
        """Cap what one analyst may spend of a population: fairness among analysts, not protection of people.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.allot("people", "ada", PureDP("0.5"), who="owner")
        >>> ledger.allotment("people", "ada")
        (PureDP(epsilon='0.5'), PureDP(epsilon='0.5'))
        """
        _check_names(population=population, user=user, who=who)
        kind_of(share)
        self._do(lambda book: operations.allot(book, population, user, share, who))

    def reserve(
        self,
        costs: Mapping[str, Guarantee],
        *,
        who: str,
        what: str,
        purpose: str = "",
        rerun: bool = True,
        at_most: Bounds | None = None,
        share_at_most: Bounds | None = None,
        drawn: Mapping[str, Guarantee] | None = None,
        seen: Container[int] | None = None,
    ) -> Reservation:
        """Charge every population named, or none: before any private row is read.

        `what` is the digest of the plan. An unsettled first attempt by the same person at the same plan and costs, whose work
        never left the door, is taken over instead of charged again (it is looked for among the eight newest charges of that
        plan); `rerun=False` neither takes one over nor leaves one to be taken over.

        `drawn` is what the person's shares are charged in all for releases of this plan that others bought (as in
        `charge_allotment`, with `in_all`): both fit the shares and stand, or neither.

        `seen` are the numbers of the releases of this plan that `find` gave: where this person's charge of the same costs was
        settled since, by another process say, the charge is refused with `SettledMeanwhile` and not made twice.

        `at_most` bounds what each population, and `share_at_most` what this person of it, may have been charged with it; it is
        looked at in the same transaction.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.reserve({"people": PureDP("0.6")}, who="ada", what="plan-1").attempt
        1
        >>> ledger.reserve({"people": PureDP("0.6")}, who="bob", what="plan-1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        cloister.errors.BudgetExceeded: A charge of ε = 0.6 to population 'people' was refused: ε = 0.4 of its budget of ε = 1...
        """
        _check_request(costs, who=who, what=what, purpose=purpose)
        if drawn:
            _check_request(drawn, who=who, what=what, purpose=purpose)
        bounds = self._bounds(costs, at_most)
        request = Request.of(
            costs, who, what, purpose, rerun=rerun, at_most=bounds, share_at_most=share_at_most, drawn=drawn, seen=seen
        )
        reservation: Reservation = self._do(lambda book: operations.reserve(book, request))
        return reservation

    def check(self, costs: Mapping[str, Guarantee], *, who: str) -> None:
        """Refuse, in the words of `reserve`, what a budget or this person's share does not hold now. Nothing is charged.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.check({"people": PureDP("0.6")}, who="ada")
        >>> ledger.remaining("people")
        PureDP(epsilon='1')
        """
        if costs and self.frozen is not None:
            raise frozen_error(self.frozen)
        request = Request.of(costs, who, "", "", rerun=False, at_most=self._standing(costs))
        with self._reading() as store:
            operations.check(reading.book_of(store), request)

    def _bounds(self, costs: Mapping[str, Guarantee], at_most: Bounds | None) -> Bounds:
        bounds = dict(at_most or {})
        for population, more in self._standing(costs).items():
            bounds[population] = [*bounds.get(population, ()), *more]
        return bounds

    def _standing(self, costs: Mapping[str, Guarantee]) -> Bounds:
        """The bounds that hold for each charge, whoever makes it and whatever others it names; a ledger by itself has none."""
        return {}

    def settle(self, reservation: Reservation, release: bytes, *, marked: bool = False) -> None:
        """Make the charge final and store the release, in one durable transaction: after it, and not before, the answer may
        leave.

        `marked` says that the noise came from a generator made for tests: only a ledger in memory takes such a release.
        """
        self._check_marked(marked)
        if not isinstance(release, bytes) or len(release) > operations.LARGEST_RELEASE:
            raise InvalidParameter(
                "The release was not settled",
                why="it must be bytes, and at most 500 MiB of them",
                instead="ledger.settle(reservation, b'…')",
            )
        digest = hashlib.sha256(release).hexdigest()
        self._do(lambda book: operations.settle(book, reservation, release, digest))

    def void(self, reservation: Reservation) -> None:
        """Give a charge back, for work that failed before any private row was read; the caller answers for that.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.void(ledger.reserve({"people": PureDP("0.6")}, who="ada", what="plan-1"))
        >>> ledger.spent("people")
        PureDP(epsilon='0')
        """
        self._do(lambda book: operations.void(book, reservation))

    def open_steps(
        self,
        population: str,
        cost: Guarantee,
        *,
        who: str,
        what: str,
        words: str,
        state: bytes,
        marked: bool = False,
        at_most: Bounds | None = None,
        share_at_most: Bounds | None = None,
    ) -> int:
        """Charge once for a series of releases that follow one another, and keep the sealed state before the first; the number of
        the opening. `what` is its name, `words` say what it is; the bounds are those of `reserve`.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> opening = ledger.open_steps("people", PureDP("0.5"), who="ada", what="entrance", words="a counter", state=b"sealed")
        >>> ledger.add_step(opening, 1, b"17 so far", b"sealed again")
        >>> ledger.last_step("people", "entrance").step, ledger.spent("people"), ledger.verify()
        (1, PureDP(epsilon='0.5'), True)
        """
        self._check_marked(marked)
        purpose = steps.opening_purpose(words)
        _check_request({population: cost}, who=who, what=what, purpose=purpose)
        bounds = self._bounds({population: cost}, at_most)
        request = Request.of({population: cost}, who, what, purpose, rerun=False, at_most=bounds, share_at_most=share_at_most)
        opening: int = self._do(lambda book: steps.open_steps(book, request, state))
        return opening

    def add_step(self, opening: int, step: int, release: bytes, state: bytes) -> None:
        """The next step's line, its release and the state after it, in one durable transaction: after it the step may leave."""
        self._do(lambda book: steps.add_step(book, opening, step, release, state))

    def last_step(self, population: str, what: str) -> LastStep:
        """Where a series of steps stands. Refused where its state is not what its last line says, or where the ledger was
        restored from a backup after it was opened.
        """
        if self.frozen is not None:
            raise frozen_error(self.frozen)
        with self._reading() as store:
            return steps.last_step(store, self._opened.key, population, what)

    def charge_allotment(
        self,
        costs: Mapping[str, Guarantee],
        *,
        who: str,
        what: str,
        purpose: str = "",
        share_at_most: Bounds | None = None,
        in_all: bool = False,
    ) -> None:
        """Charge a person's shares for a stored release that another had bought; the populations are not charged again.

        With `in_all` the costs are what may be charged for this plan in all: only what was not charged before is, in the same
        transaction, so that asking twice at the same instant charges once.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> for _ in range(2):
        ...     ledger.charge_allotment({"people": PureDP("0.3")}, who="bob", what="plan-1", in_all=True)
        >>> ledger.drawn("people", "bob", "plan-1")
        PureDP(epsilon='0.3')
        """
        _check_request(costs, who=who, what=what, purpose=purpose)
        request = Request.of(costs, who, what, purpose, rerun=False, share_at_most=share_at_most)
        self._do(lambda book: operations.draw(book, request, in_all=in_all))

    def bind(self, source: str | Collection[str], population: str, *, who: str) -> None:
        """Write down that a source holds rows of this population: registered under any other name, it spends the same budget.

        `source` is a digest of where the rows are, or several, which are written together. One that belongs to another population
        is refused, and then none is written.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.bind("5f3a", "people", who="owner")
        >>> ledger.bound("5f3a")
        'people'
        """
        sources = [source] if isinstance(source, str) else sorted(source)
        for each in sources:
            _check_names(source=each, population=population, who=who)
        known = self.bound_to(sources)
        new = [each for each in sources if known.get(each) != population]
        if new:
            self._do(lambda book: operations.bind(book, new, population, who))

    def note_not_private(self, population: str, *, who: str, what: str) -> None:
        """Write down, before it leaves, that something leaves by the second door: no budget bounds this population from then on.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.note_not_private("people", who="owner", what="an anonymised table")
        >>> ledger.unbounded("people")
        True
        """
        _check_names(population=population, who=who, what=what)
        self._do(lambda book: operations.note_not_private(book, population, who, what))

    def restore(self, losses: Mapping[str, Guarantee], *, who: str, why: str) -> None:
        """Thaw a ledger whose database was put back from a backup: the owner says what each population has spent until now.

        Every population needs a loss, and each at least what the backup and the head file know (`ledger.frozen.losses`).
        """
        _check_names(who=who, why=why)
        freeze = self.frozen
        if freeze is None:
            raise LedgerError(
                "Nothing was restored", why="this ledger is not frozen", instead="ledger.raise_budget(…) to change a budget"
            )
        self._own()

        def step(book: Book) -> None:
            if freeze.tables:
                from cloister.ledger.migrations import rebuild

                book.reload()  # counts as a write, so that a refusal from here on undoes all of it
                rebuild(book)
            operations.restore(book, dict(losses), freeze.accounts, who, why)

        self._writer.thaw(step)

    # Reading.

    @property
    def durable(self) -> bool:
        """Whether it outlives this process: what a test's generator made is refused then.

        >>> Ledger().durable
        False
        """
        return not self._store.memory

    def derive(self, *parts: str) -> bytes:
        """32 bytes that follow from the ledger's key and the parts, and tell nothing of either: a secret for each purpose.

        >>> ledger = Ledger()
        >>> ledger.derive("order", "1") == ledger.derive("order", "1"), ledger.derive("order", "1") == ledger.derive("order", "2")
        (True, False)
        """
        message = json.dumps(["derived", *parts]).encode()
        return hmac.new(self._opened.key, message, hashlib.sha256).digest()

    def bound(self, source: str) -> str | None:
        """The population whose rows a source holds, if that was written down."""
        with self._reading() as store:
            return reading.bound(store, source)

    def bound_to(self, sources: Iterable[str]) -> dict[str, str]:
        """The populations of those sources for which one was written down.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.bind(["5f3a", "77c1"], "people", who="owner")
        >>> ledger.bound_to(["5f3a", "0000"])
        {'5f3a': 'people'}
        """
        wanted = list(sources)
        if not wanted:
            return {}
        with self._reading() as store:
            found = {each: reading.bound(store, each) for each in wanted}
        return {each: population for each, population in found.items() if population is not None}

    def waiting(self, costs: Mapping[str, Guarantee], *, who: str, what: str) -> int | None:
        """The charge of an attempt that did not come to its end, and that `reserve` would take over; None: it would charge again.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> charge = ledger.reserve({"people": PureDP("0.1")}, who="ada", what="plan-1")
        >>> ledger.waiting({"people": PureDP("0.1")}, who="ada", what="plan-1") == charge.id
        True
        >>> ledger.waiting({"people": PureDP("0.1")}, who="bob", what="plan-1") is None
        True
        """
        _check_request(costs, who=who, what=what, purpose="")
        request = Request.of(costs, who, what, "", rerun=True)
        with self._reading() as store:
            return operations.earlier_attempt(reading.book_of(store), request)

    def drawn(self, population: str, who: str, what: str) -> Guarantee:
        """What a person's share was charged for releases of this plan that others had bought."""
        with self._reading() as store:
            return reading.drawn(store, population, who, what)

    @property
    def frozen(self) -> Freeze | None:
        """Why nothing can be charged until `restore`; None for a ledger in good order."""
        return self._writer.freeze

    @property
    def head(self) -> tuple[int, str]:
        """How many lines there are, and the hash of the last.

        >>> Ledger().head[0]
        1
        """
        with self._reading() as store:
            book = reading.book_of(store)
            book.begin()
            return book.sequence, book.hash.hex()

    def budget(self, population: str) -> Guarantee:
        """The budget that was written for a population."""
        with self._reading(at_once=True) as store:
            return reading.budget(store, population)

    def spent(self, population: str) -> Guarantee:
        """The exact sum of all charges that stand. See `unbounded` for what left by the second door."""
        with self._reading() as store:
            found = reading.book_of(store).population(population)
            return guarantee_of(found.kind, found.spent)

    def remaining(self, population: str) -> Guarantee:
        """What may still be charged."""
        if self.frozen is not None:
            raise frozen_error(self.frozen)
        with self._reading() as store:
            return reading.book_of(store).population(population).remaining()

    def unbounded(self, population: str) -> bool:
        """Whether something that is not private left: then no number bounds what is known of this population."""
        with self._reading() as store:
            return reading.book_of(store).population(population).unbounded

    def allotment(self, population: str, user: str) -> tuple[Guarantee, Guarantee] | None:
        """An analyst's share of a population and what is left of it; None where nothing but the budget caps the analyst."""
        with self._reading() as store:
            book = reading.book_of(store)
            found, spender = book.population(population), book.spender(population, user)
            return None if spender.share is None else (spender.share, guarantee_of(found.kind, spender.left()))

    def spent_by(self, population: str, user: str) -> Guarantee:
        """What one analyst was charged of a population, with what others had bought, whether or not a share caps it.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> _ = ledger.reserve({"people": PureDP("0.1")}, who="ada", what="plan-1")
        >>> ledger.spent_by("people", "ada"), ledger.spent_by("people", "bob")
        (PureDP(epsilon='0.1'), PureDP(epsilon='0'))
        """
        with self._reading() as store:
            book = reading.book_of(store)
            return guarantee_of(book.population(population).kind, book.spender(population, user).spent)

    def populations(self) -> list[str]:
        """The names of all populations, sorted."""
        with self._reading() as store:
            return reading.populations(store)

    def charges(self, population: str, *, what: str | None = None) -> list[Charge]:
        """A population's account, in the order of the chain: charges, losses after a backup, and what was not private; with
        `what`, of that plan alone.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger(clock=lambda: 0)
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> _ = ledger.reserve({"people": PureDP("0.1")}, who="ada", what="plan-1")
        >>> [(charge.who, charge.what, charge.cost, charge.state) for charge in ledger.charges("people")]
        [('ada', 'plan-1', PureDP(epsilon='0.1'), 'reserved')]
        """
        with self._reading() as store:
            return reading.charges(store, population, what)

    def find(self, what: str, populations: Iterable[str]) -> list[StoredRelease]:
        """The settled releases of a plan over exactly these populations, oldest first, each checked against the chain.

        >>> from cloister.privacy import PureDP
        >>> ledger = Ledger()
        >>> _ = ledger.open("people", PureDP(1), who="owner")
        >>> ledger.settle(ledger.reserve({"people": PureDP("0.1")}, who="ada", what="plan-1"), b"answer")
        >>> [found.release for found in ledger.find("plan-1", ["people"])]
        [b'answer']
        """
        with self._reading(at_once=True) as store:
            return reading.find(store, self._opened.key, what, frozenset(populations))

    def lines(self, after: int = 0) -> Iterator[LedgerRecord]:
        """Every line of the chain that comes after a number, oldest first: the audit log.

        >>> [line.kind for line in Ledger().lines()]
        ['created']
        """
        if self._store.memory:  # only one connection: it must be free again before the caller sees a line
            with self._reading() as store:
                found = list(reading.lines(store, after))
            yield from found
            return
        with self._snapshot() as store:
            yield from reading.lines(store, after)

    def verify(self) -> bool | BrokenLine:
        """True, or the first line at which this ledger is not what was written: changed, dropped, moved, truncated or rolled
        back."""
        from cloister.ledger.verify import verify

        head_file = self._opened.head_file
        try:
            known = None if head_file is None else head_file.read()  # before the database, which may only be ahead of it
        except OSError:
            raise head_unavailable(self._store.name) from None
        with self._snapshot() as store:
            return verify(store, self._opened.key, known, watched=head_file is not None)

    def export(self, population: str | None = None) -> list[dp_event.DpEvent]:
        """The charges that stand as `dp_accounting` events, for one population or for all (needs `dp-accounting`)."""
        from cloister.ledger.export import events

        with self._snapshot() as store:
            return events(store, population)

    def close(self) -> None:
        """Let go of the files. Closing twice is harmless."""
        if os.getpid() != self._process:
            return
        with self._writer.turn, self._reader_turn:
            if self._writer.closed:
                return
            if self._reader is not None and self._reader is not self._store:
                self._reader.close()
            self._writer.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger: {self._store.name}>"

    def expect(self, coming: Callable[[], int]) -> None:
        """Say, by a function, how many are at work just now that will soon charge or settle, so that what comes together is
        pushed to the disk together. It decides nothing but how long a commit waits for others: two milliseconds at most.

        >>> Ledger().expect(lambda: 3)
        """
        self._writer.expect(coming)

    # How it gets there.

    def _do(self, step: Step) -> Any:
        self._own()
        return self._writer.do(step)

    @contextlib.contextmanager
    def _reading(self, *, at_once: bool = False) -> Iterator[Store]:
        """One moment of the database, for a short read. With `at_once` what is read is found by one statement, or never changes
        once it is written: then it needs no transaction, where the store takes each statement by itself."""
        self._own()
        with self._reader_turn:
            if self._writer.closed:
                raise LedgerError("Nothing was read", why="this ledger is closed", instead="a new Ledger(…)")
            try:
                if self._reader is None:
                    self._reader = self._store.another()
                if not (at_once and self._reader.single):
                    self._reader.begin_reading()
                try:
                    yield self._reader
                finally:
                    self._reader.rollback()
            except UnicodeEncodeError:
                raise InvalidParameter("The name is invalid", why="it is not printable text", instead="another name") from None
            except self._store.errors as error:
                raise self._store.unavailable(error) from None

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[Store]:
        """One moment of the database, for a long read on a connection of its own."""
        if self._store.memory:
            with self._reading() as store:
                yield store
            return
        self._own()
        try:
            store = self._store.another()
            try:
                store.begin_reading()
                yield store
            finally:
                store.close()
        except self._store.errors as error:
            raise self._store.unavailable(error) from None

    def _check_marked(self, marked: bool) -> None:
        if marked and not self._store.memory:
            raise LedgerError(
                "The release was not settled",
                why="its noise came from a generator made for tests, which can be predicted",
                instead="a Ledger() in memory for tests, or the secure generator",
            )

    def _own(self) -> None:
        """A forked child gets connections and locks of its own: those of its parent are not its to use."""
        if os.getpid() == self._process:
            return
        if self._store.memory:
            raise LedgerError(
                "Nothing was charged",
                why="this ledger is in the memory of another process",
                instead="a ledger with a path: Ledger('budget.db')",
            )
        _INHERITED.append((self._opened, self._reader))
        self._begin()


def _check_request(costs: Mapping[str, Guarantee], *, who: str, what: str, purpose: str) -> None:
    if not costs or not isinstance(costs, Mapping):
        raise InvalidParameter(
            "costs= is invalid", why="a charge names at least one population", instead='costs={"people": PureDP("0.1")}'
        )
    for cost in costs.values():
        kind_of(cost)
    _check_names(costs, who=who, what=what, **({} if purpose == "" else {"purpose": purpose}))


def _check_names(populations: Iterable[str] = (), **names: str) -> None:
    """Names and reasons go into lines that people read: text, not empty, printable, of a size to read."""
    for name, value in [*zip(repeat("population"), populations), *names.items()]:
        if not is_text(value, 1000):
            raise InvalidParameter(
                f"{name} is invalid", why="it must be printable text of 1 to 1000 characters", instead=f"{name}='…'"
            )
