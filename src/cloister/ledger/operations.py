"""What can happen in a ledger: each function is one step inside a transaction, and refuses before it writes anything.

A step that raises has written nothing, so that the others of its batch go on. The states of a charge::

    reserve ──► reserved ──► settled      an answer may leave
                   │  └────► reserved     claimed by a second attempt, at most once
                   └───────► voided       only a first attempt, before a private row was read
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cloister.errors import BudgetExceeded, LedgerError
from cloister.ledger.book import Book, Population, Spender
from cloister.ledger.chain import reserved_text, settled_text
from cloister.ledger.head import Account
from cloister.ledger.measure import Units, charged_units, decode, encode, guarantee_of, in_measure, kind_of, units_down, units_up
from cloister.ledger.records import Bound, Reservation
from cloister.ledger.request import Request
from cloister.ledger.store import Store
from cloister.privacy.guarantee import Guarantee

LARGEST_RELEASE = 500 * 2**20

_CHARGE = "INSERT INTO charges (population, what, id) VALUES (?, ?, ?)"
_EARLIER = """SELECT newest.id, releases.settled
    FROM (SELECT id FROM charges WHERE population = ? AND what = ? ORDER BY id DESC LIMIT 8) AS newest
    LEFT JOIN releases ON releases.id = newest.id LEFT JOIN outcomes ON outcomes.id = newest.id
    WHERE releases.id IS NOT NULL OR outcomes.id IS NULL ORDER BY newest.id"""
"""The attempts at a plan that are settled, and the first ones that are neither voided nor taken over, among its eight newest
charges: so that the search takes no longer for a plan that was asked a million times."""

_STANDING = """SELECT outcomes.state, outcomes.attempt, releases.settled
    FROM charges LEFT JOIN outcomes ON outcomes.id = ? LEFT JOIN releases ON releases.id = ?
    WHERE charges.population = ? AND charges.what = ? AND charges.id = ?"""


_RESTORED = "SELECT 1 FROM lines WHERE sequence > ? AND payload LIKE ? LIMIT 1"
_DRAWN = "SELECT spent, slack FROM draws WHERE population = ? AND who = ? AND what = ?"
_BOUND = "SELECT population FROM sources WHERE source = ?"


class SettledMeanwhile(LedgerError):
    """The same was charged and answered by another process since the releases of the plan were looked up."""

    stored = "LedgerError"


def open_population(book: Book, name: str, budget: Guarantee | None, who: str) -> Guarantee:
    """The budget of a population, written now if it has none yet."""
    found = book.find_population(name)
    if found is None and budget is None:
        book.population(name)
    if found is None and budget is not None:
        found = Population.new(name, budget)
        book.line("opened", population=name, budget=encode(budget), who=who)
        book.save_population(found)
    assert found is not None
    if budget is not None and (kind_of(budget) != found.kind or budget != found.budget):
        raise LedgerError(
            f"Population {name!r} was not opened with a budget of {budget}",
            why=f"its budget is {found.budget}, and only raise_budget changes it",
            instead=f"ledger.open({name!r}, None, who='…'), or its owner's ledger.raise_budget({name!r}, …, who='…', why='…')",
        )
    return found.budget


def raise_budget(book: Book, name: str, budget: Guarantee, who: str, why: str) -> Guarantee:
    """A larger budget of the same kind."""
    found = book.population(name)
    if kind_of(budget) != found.kind or not found.budget <= budget:
        raise LedgerError(
            f"The budget of {name!r} was not changed to {budget}",
            why=f"it is {found.budget}, and a budget is only ever raised, in its own measure",
            instead="a budget that is larger in every parameter",
        )
    book.line("raised", population=name, budget=encode(budget), who=who, why=why)
    found.grow(budget)
    book.save_population(found)
    return budget


def allot(book: Book, name: str, user: str, share: Guarantee, who: str) -> None:
    """A cap on what one person may spend of a population, past spending included."""
    share = in_measure(share, book.population(name).kind)
    book.line("allotted", population=name, user=user, share=encode(share), who=who)
    spender = book.spender(name, user)
    spender.share, spender.limit = share, units_down(share)
    book.save_spender(name, user, spender)


def reserve(book: Book, request: Request) -> Reservation:
    """Charge every population named, or none; or take over an earlier attempt at the same. What is drawn beside it is charged
    with it, or not at all. Refused where the same was settled that the request has not seen."""
    owed = _still_owed(book, request, request.drawn) if request.drawn else None
    if request.rerun:
        earlier = earlier_attempt(book, request)
        if earlier is not None:
            book.check_waits(earlier, request.what)
            _draw(book, owed, _fit_shares(book, owed))
            book.live.pop(earlier, None)
            book.line("claimed", id=earlier, who=request.who)
            book.write("INSERT INTO outcomes (id, state, attempt) VALUES (?, 'reserved', 2)", (earlier,))
            return _reservation(request, earlier, attempt=2)
    _, prices, who, what, purpose, rerun, *_ = request
    draws = {} if owed is None else _fit_shares(book, owed)
    beside = {name: units for name, (_, units) in draws.items()}
    charges = []
    extra: dict[str, Any] = {} if rerun else {"rerun": False}
    for name, cost in request.costs.items():
        population, spender, units = _fitting(book, name, cost, request, beside.get(name, (0, 0)))
        charges.append((name, population, spender, units))
        if prices[name].kind != population.kind or not prices[name].whole:  # another measure, or rounded up to a unit
            extra.setdefault("charged", {})[name] = encode(guarantee_of(population.kind, units))
    _draw(book, owed, draws)
    if extra:
        number = book.line("reserved", who=who, what=what, purpose=purpose, costs=request.encoded, **extra)
    else:
        number = book.append(reserved_text(at=book.now(), costs=request.encoded, purpose=purpose, what=what, who=who))
    for name, population, spender, units in charges:
        book.write(_CHARGE, (name, what, number))
        population.add(units)
        book.save_population(population)
        spender.add(units)
        book.save_spender(name, who, spender)
    book.keep_live(number, next(iter(prices)), what)
    return _reservation(request, number, attempt=1)


def settle(book: Book, reservation: Reservation, release: bytes, digest: str) -> None:
    """The charge is final and the release is stored: in one transaction, so that neither is without the other."""
    state, _ = _standing(book, reservation)
    if state != "reserved":
        raise _refused(reservation, state, "settled")
    book.live.pop(reservation.id, None)
    text = settled_text(at=book.now(), attempt=reservation.attempt, number=reservation.id, release=digest)
    number = book.append(text)
    book.write("INSERT INTO releases (id, settled, content) VALUES (?, ?, ?)", (reservation.id, number, release))


def void(book: Book, reservation: Reservation) -> None:
    """Give a charge back: for a first attempt that nobody took over, since any other may have read a private row."""
    state, attempt = _standing(book, reservation)
    if state != "reserved" or attempt != 1:
        raise _refused(reservation, state, "voided")
    book.live.pop(reservation.id, None)
    book.line("voided", id=reservation.id)
    book.write("INSERT INTO outcomes (id, state, attempt) VALUES (?, 'voided', 1)", (reservation.id,))
    payload = book.payload(reservation.id)
    for name, units in charged_units(payload, {name: book.population(name).kind for name in payload["costs"]}).items():
        population, spender = book.population(name), book.spender(name, payload["who"])
        back = _less((0, 0), units)
        population.add(back)
        book.save_population(population)
        spender.add(back)
        book.save_spender(name, payload["who"], spender)


def draw(book: Book, request: Request, *, in_all: bool = False) -> None:
    """Charge a person's shares for a release that another had bought: fairness alone, so the populations are not charged.

    With `in_all` the costs are what may be charged for this plan in all: what was charged before is taken off them here, so
    that two requests at the same instant are charged once.
    """
    owed = _still_owed(book, request, request.costs) if in_all else request
    _draw(book, owed, _fit_shares(book, owed))


def _still_owed(book: Book, request: Request, costs: Mapping[str, Guarantee]) -> Request | None:
    """What is left to charge of costs that are named in all; None where nothing is."""
    rest = {}
    for name, cost in costs.items():
        kind = book.population(name).kind
        whole = units_up(in_measure(cost, kind))
        row = book.store.execute(_DRAWN, (name, request.who, request.what)).fetchone() or (0, 0)
        left = max(whole[0] - int(row[0]), 0), max(whole[1] - int(row[1]), 0)
        if any(left):
            rest[name] = guarantee_of(kind, left)
    share_at_most = request.share_at_most
    return (
        Request.of(rest, request.who, request.what, request.purpose, rerun=False, share_at_most=share_at_most) if rest else None
    )


def _fit_shares(book: Book, request: Request | None) -> dict[str, tuple[Spender, Units]]:
    """What a request comes to for each population's share, where all of it fits."""
    costs = {} if request is None else request.costs
    return {name: _fit_share(book, book.population(name), cost, request) for name, cost in costs.items() if request is not None}


def _draw(book: Book, request: Request | None, draws: Mapping[str, tuple[Spender, Units]]) -> None:
    if request is None:
        return
    book.line("drawn", who=request.who, what=request.what, purpose=request.purpose, costs=request.encoded)
    for name, (spender, units) in draws.items():
        spender.add(units)
        book.save_spender(name, request.who, spender)
        place = (name, request.who, request.what)
        row = book.store.execute(_DRAWN, place).fetchone() or (0, 0)
        book.write("DELETE FROM draws WHERE population = ? AND who = ? AND what = ?", place)
        total = (str(int(row[0]) + units[0]), str(int(row[1]) + units[1]))
        book.write("INSERT INTO draws (population, who, what, spent, slack) VALUES (?, ?, ?, ?, ?)", (*place, *total))


def bind(book: Book, sources: Sequence[str], name: str, who: str) -> None:
    """Write down that sources hold rows of this population's people: for good, whatever the table is called later."""
    book.population(name)
    rows = {source: book.store.execute(_BOUND, (source,)).fetchone() for source in sources}
    for row in rows.values():
        if row is not None and row[0] != name:
            raise LedgerError(
                f"The source was not bound to population {name!r}",
                why=f"its rows are those of population {row[0]!r}, which keeps what it has spent",
                instead=f"population={row[0]!r}",
            )
    for source, row in rows.items():
        if row is None:
            book.line("bound", source=source, population=name, who=who)
            book.write("INSERT INTO sources (source, population) VALUES (?, ?)", (source, name))


def note_not_private(book: Book, name: str, who: str, what: str) -> None:
    """Something left that no budget bounds: the population's spending is unbounded from here on."""
    population = book.population(name)
    number = book.line("not private", population=name, who=who, what=what)
    book.write(_CHARGE, (name, what, number))
    population.unbounded = True
    book.save_population(population)


def restore(book: Book, losses: Mapping[str, Guarantee], known: Mapping[str, Account], who: str, why: str) -> None:
    """After a restored backup: each population has spent what the owner says, which is no less than what is known.

    Populations that the backup did not have are opened again with the budget that the head remembers.
    """
    least = least_losses(book, known)
    missing = sorted(least.keys() - losses.keys())
    if missing:
        raise LedgerError(
            "The ledger stays frozen",
            why=f"no loss was entered for {', '.join(map(repr, missing))}",
            instead="a loss for every population",
        )
    entered: dict[str, Guarantee] = {}
    for name, loss in losses.items():
        if name not in least:
            book.population(name)
        entered[name] = in_measure(loss, kind_of(least[name]))
        if not least[name] <= entered[name]:
            raise LedgerError(
                "The ledger stays frozen",
                why=f"the loss of {name!r} is known to be at least {least[name]}, and {loss} was entered",
                instead=f"{{{name!r}: {least[name]!r}}} or more",
            )
    budgets = {name: known[name].budget for name in sorted(losses) if book.find_population(name) is None}
    unbounded = sorted(name for name, account in known.items() if account.unbounded)
    encoded = {name: encode(loss) for name, loss in sorted(entered.items())}
    populations = {
        name: Population.new(name, decode(budgets[name])) if name in budgets else book.population(name) for name in entered
    }
    spent = {name: units_up(loss) for name, loss in entered.items()}
    added = {name: encode(guarantee_of(found.kind, _less(spent[name], found.spent))) for name, found in populations.items()}
    number = book.line("restored", losses=encoded, added=added, budgets=budgets, unbounded=unbounded, who=who, why=why)
    for name, population in populations.items():
        population.spent = spent[name]
        population.unbounded = population.unbounded or name in unbounded
        book.save_population(population)
        book.write(_CHARGE, (name, why, number))


def least_losses(book: Book, known: Mapping[str, Account]) -> dict[str, Guarantee]:
    """What each population has spent at least: the more of what the database says and what the head remembers."""
    return least_of({found.name: (found.kind, found.spent) for found in book.populations()}, known)


def least_of(spent: Mapping[str, tuple[str, Units]], known: Mapping[str, Account]) -> dict[str, Guarantee]:
    """The same of what is known otherwise to be spent, each with the kind of its budget."""
    least = dict(spent)
    for name, account in known.items():
        kind, units = least.get(name, (account.budget[0], (0, 0)))
        least[name] = (kind, (max(units[0], account.spent[0]), max(units[1], account.spent[1])))
    return {name: guarantee_of(kind, units) for name, (kind, units) in sorted(least.items())}


def check(book: Book, request: Request) -> None:
    """Refuse what would not be charged."""
    for name, cost in request.costs.items():
        _fitting(book, name, cost, request, (0, 0))


def _fitting(book: Book, name: str, cost: Guarantee, request: Request, beside: Units) -> tuple[Population, Spender, Units]:
    population = book.population(name)
    spender, units = _fit_share(book, population, cost, request, beside)
    if not population.has_room(units):
        raise BudgetExceeded(
            f"A charge of {cost} to population {name!r} was refused",
            why=f"{population.remaining()} of its budget of {population.budget} remains",
            instead="a smaller spend=, or a budget that its owner raises",
        )
    if request.at_most:
        _keep_within(request.at_most.get(name, ()), population, cost, population.spent, units)
    return population, spender, units


def _fit_share(
    book: Book, population: Population, cost: Guarantee, request: Request, beside: Units = (0, 0)
) -> tuple[Spender, Units]:
    """The spender, and what a charge comes to, where it fits the share beside another charge of the same step."""
    name, who, found = population.name, request.who, request.prices[population.name]
    units = found.units if found.kind == population.kind else units_up(in_measure(cost, population.kind))
    spender = book.spender(name, who)
    both = units[0] + beside[0], units[1] + beside[1]
    if not spender.has_room(both):
        left = spender.left()
        told = f"A charge of {cost}" if both == units else f"A charge of {cost}, and a charge to the share for stored answers,"
        raise BudgetExceeded(
            f"{told} to population {name!r} was refused",
            why=f"{guarantee_of(population.kind, left)} of the share of {who!r}, {spender.share}, remains",
            instead="a smaller spend=, or a larger share from the population's owner",
        )
    if request.share_at_most:
        _keep_within(request.share_at_most.get(name, ()), population, cost, spender.spent, both)
    return spender, units


def _keep_within(bounds: Sequence[Bound], population: Population, cost: Guarantee, spent: Units, units: Units) -> None:
    """Refuse a charge that would bring what was spent beyond a bound."""
    for bound in bounds:
        limit = units_down(in_measure(bound.most, population.kind))
        if spent[0] + units[0] > limit[0] or spent[1] + units[1] > limit[1]:
            left = guarantee_of(population.kind, (max(limit[0] - spent[0], 0), max(limit[1] - spent[1], 0)))
            some = bound.left if spent[0] < limit[0] else ""
            raise BudgetExceeded(
                f"A charge of {cost} to population {population.name!r} was refused",
                why=some.format(rest=left, cost=cost) or bound.why,
                instead="a smaller spend=, or ask the person who made the rule",
                rule=bound.rule,
            )


def _less(left: Units, right: Units) -> Units:
    return left[0] - right[0], left[1] - right[1]


def _reservation(request: Request, number: int, *, attempt: int) -> Reservation:
    return Reservation(
        id=number, costs=request.costs, who=request.who, what=request.what, purpose=request.purpose, attempt=attempt
    )


def earlier_attempt(book: Book, request: Request) -> int | None:
    """The reservation that this request may take over, if there is one: after a restored backup none of before, since its answer
    may have left in the lines that are missing. Refused where one was settled that the request has not seen."""
    place = (next(iter(request.costs)), request.what)
    for number, settled in book.store.execute(_EARLIER, place).fetchall():
        if settled is not None and (request.seen is None or number in request.seen):
            continue
        payload = book.payload(number)
        same = payload["kind"] == "reserved" and payload["who"] == request.who and payload["costs"] == request.encoded
        if same and settled is not None:
            raise SettledMeanwhile(
                "The charge was refused",
                why="another attempt at the same query was first",
                instead="ledger.find(what, populations)",
            )
        if same and payload.get("rerun", True) and not restored_since(book.store, number):
            return int(number)
    return None


def restored_since(store: Store, number: int) -> bool:
    """Whether the ledger was restored from a backup after this line."""
    return store.execute(_RESTORED, (number, '%"kind":"restored"%')).fetchone() is not None


def _standing(book: Book, reservation: Reservation) -> tuple[str, int]:
    """The state and the attempts of a reservation; "unknown" where it is of another ledger."""
    if not isinstance(reservation, Reservation):
        why, instead = "it is not what reserve returned", "ledger.reserve(…) in the same ledger"
        raise LedgerError("The reservation is invalid", why=why, instead=instead)
    population = next(iter(reservation.costs))
    if book.live.get(reservation.id) == (population, reservation.what):
        return "reserved", 1
    place = (reservation.id, reservation.id, population, reservation.what, reservation.id)
    row = book.store.execute(_STANDING, place).fetchone()
    if row is None:
        return "unknown", 0
    outcome, attempt, settled = row
    return "settled" if settled is not None else outcome or "reserved", attempt or 1


def _refused(reservation: Reservation, state: str, wanted: str) -> LedgerError:
    if state == "unknown":
        why, instead = "this ledger has no such reservation", "ledger.reserve(…) in the same ledger"
    elif state == "settled":
        why, instead = "another attempt at the same query was first", "ledger.find(what, populations)"
    elif state == "voided":
        why, instead = "its charge was given back", "ledger.reserve(…) once more"
    else:
        why = "a second attempt took it over, and either may have read private rows: the charge stands"
        instead = "ledger.settle(…)"
    return LedgerError(f"Reservation {reservation.id}, which is {state}, was not {wanted}", why=why, instead=instead)
