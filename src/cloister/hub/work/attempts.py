"""What a job has charged, over its attempts: at most what was ordered, whatever dies in between.

Each charge is written down with the job right before it is made. An attempt that comes after a killed one reads that, finds in
the ledger which of them were made, and goes the same way once more:

- what was settled is answered again at no cost: sums as any question is, rows under the job's own name (`Session.run(once=)`);
- what was reserved and not settled runs under its own charge, which the ledger allows once;
- what was not charged yet is charged now.

It asks the very same as the first, or nothing: where the data set has another version by now, or its grant leaves other rows, the
plan that was charged cannot run any more. The charge belongs to the population and would cover work on the new rows as well;
but the ledger says for which plan it was made, and a line of it must not come to stand for another one. So the work is not done,
the charge stands, and whoever wants it of the new rows orders it.

Guarantee: that of one run. Randomness is drawn again in the second attempt for what had not been settled, and of the first
nothing had left the door: a charge is settled once, by whichever attempt comes first, and only what is settled is read. So what
is made is a function of one release a charge, and its cost is the sum of these charges. That there was a second attempt is seen;
a row that made the first one die is seen by that at most once more than was paid for, as the ledger has it
(docs/explanation/ledger.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.errors import CloisterError, Conflict
from cloister.hub.decisions.held import Exchanged
from cloister.hub.hub import Hub
from cloister.hub.problems import problem_of
from cloister.hub.service import Progress
from cloister.hub.work.recheck import charged
from cloister.ledger import Charge, Ledger
from cloister.ledger.measure import decode, encode, in_measure, kind_of, units_up
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session import Delegate, Door, Outcome, Question, Release, RowMethod, Spending
from cloister.stored import Stored


@dataclass(frozen=True, kw_only=True)
class _Noted:
    """A charge that was about to be made."""

    what: str
    population: str
    who: str
    cost: Guarantee
    after: int
    """How many lines the ledger had."""
    over: int
    """The reservation of an earlier attempt at the same that was about to be taken over; 0: none was there."""

    @classmethod
    def of(cls, ledger: Ledger, what: str, population: str, who: str, cost: Guarantee, *, over: int) -> _Noted:
        whole = in_measure(cost, kind_of(ledger.budget(population)))
        return cls(what=what, population=population, who=who, cost=whole, after=ledger.head[0], over=over)

    def fits(self, charge: Charge) -> bool:
        """Whether a charge for its plan may be the one."""
        return charge.who == self.who and charge.cost is not None and units_up(charge.cost) == units_up(self.cost)

    def made(self, ledger: Ledger) -> Charge | None:
        """The charge, where it was made: it came after the note, or it was taken over."""
        for each in ledger.charges(self.population, what=self.what):
            ours = each.id > self.after or (each.id == self.over and each.attempt > 1)
            if ours and self.fits(each) and each.state in ("reserved", "settled"):
                return each
        return None


_NOTED = Stored(_Noted, "Noted", "what", "population", "who", "cost", "after", "over")
"""As a job keeps it, with its cost as the ledger writes one."""


class Charges:
    """The charges of one job, those of its earlier attempts included."""

    def __init__(self, hub: Hub, progress: Progress) -> None:
        self._hub, self._progress = hub, progress
        kept = ({name: each[name] for name in _NOTED.attributes} for each in progress.notes)  # the queue writes more beside it
        self._noted: list[_Noted] = [_NOTED.made({**each, "cost": decode(each["cost"])}) for each in kept]
        self._earlier = self._made()
        self._answered: set[int | str] = set()
        self._runs = 0

    @property
    def before(self) -> dict[str, Guarantee]:
        """By population, what was charged by attempts before this one."""
        return _sums(self._earlier)

    @property
    def paid(self) -> dict[str, str]:
        """By population, what has been charged until now, as text."""
        return {population: str(each) for population, each in self.charged.items()}

    @property
    def charged(self) -> dict[str, Guarantee]:
        """By population, what has been charged until now."""
        return _sums(self._made())

    @property
    def told(self) -> dict[str, Any]:
        """What a line of the audit log says of an attempt that is not the first."""
        if self._progress.attempt == 1:
            return {}
        lines = list(dict.fromkeys(each.id for each in self._earlier))
        under = {"charged_by": "the first attempt", "ledger_lines": lines} if lines else {}
        return {"attempt": self._progress.attempt, **under}

    @contextmanager
    def standing(self, withheld: str) -> Iterator[None]:
        """Where something was charged already, a refusal says so; `withheld`: what was not released."""
        try:
            yield
        except Exchanged:  # it is decided once more
            raise
        except CloisterError as error:
            if problem_of(error).status < 500 and self.charged:
                raise charged(withheld, error) from None
            raise

    def name(self) -> str:
        """The name of the next run over rows: the same in each attempt."""
        self._runs += 1
        return f"job {self._progress.job}, run {self._runs}"

    def choices(self) -> Random:
        """Where a method takes choices from that protect nothing and lead to its next questions: the same in each attempt."""
        return Random.derived(self._hub.ledger.derive("learning", self._progress.job))

    def answered(self, charges: Iterable[int | str]) -> None:
        """A question was answered, or rows were released, under these charges of the ledger: they have come to their end."""
        self._answered.update(charges)

    def about_to_charge(self, who: str, what: str, costs: Mapping[str, Guarantee]) -> None:
        """Write a charge down before it is made. After a killed attempt nothing new is charged until all that it was charged for
        was answered again; where that cannot be any more, it is refused."""
        ledger = self._hub.ledger
        over = ledger.waiting(costs, who=who, what=what) or 0
        noted = [_Noted.of(ledger, what, population, who, cost, over=over) for population, cost in costs.items()]
        left = {each.id for each in self._earlier} - self._answered
        if left and left != {each.over for each in noted}:
            raise Conflict(
                "The second attempt was not made",
                why="the data set, what a grant leaves of it, or the ledger has changed since it was charged; the charge stands",
                instead="submit it again",
            )
        for each in noted:
            self._progress.note({**_NOTED.told(each), "cost": encode(each.cost)})
            self._noted.append(each)

    def _made(self) -> list[Charge]:
        made = [charge for each in self._noted if (charge := each.made(self._hub.ledger)) is not None]
        return list({(charge.population, charge.id): charge for charge in made}.values())  # one number for all of a charge


class AttemptSession(Delegate):
    """A session that works for a job: it says what is charged before it is, and is charged only while `still` refuses nothing;
    `begun` is told once the work has."""

    def __init__(self, session: Door, charges: Charges, still: Callable[[], None], begun: Callable[[], None]) -> None:
        super().__init__(session)
        self._session, self._charges, self._begun = session, charges, begun

        def told(what: str, costs: Mapping[str, Guarantee]) -> None:
            still()
            charges.about_to_charge(session.who, what, costs)

        session.tell_charges(told)

    @property
    def choices(self) -> Random:
        """As the job has it, instead of the session's own randomness."""
        return self._charges.choices()

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left for this job: what it was charged before is left for it too."""
        before = self._charges.before
        return {name: left + before[name] if name in before else left for name, left in super().remaining_by.items()}

    @property
    def charged(self) -> dict[str, Guarantee]:
        """By population, what the job was charged until now."""
        return self._charges.charged

    @contextmanager
    def within_share(self, spend: Spending) -> Iterator[AttemptSession]:
        """One for questions alone, which spends at most so much over all attempts of the job."""
        with self._session.within_share(spend, paid=self._charges.before) as share:
            within = copy(self)
            within._measurer = share
            yield within

    def given(self, question: Question) -> Release | None:
        """What this person was answered before: nothing is charged."""
        return self._session.given(question)

    def measure(self, question: Question, spend: Spending, *, purpose: str = "") -> Release:
        """As the session does."""
        release = super().measure(question, spend, purpose=purpose)
        self._answered([release])
        return release

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> list[Release]:
        """As the session does; several share one charge."""
        releases = super().measure_all(questions, spend, purpose=purpose, shares=shares)
        self._answered(releases)
        return releases

    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "") -> Outcome:
        """As the session does, once a job."""
        assert self._measurer is self._session, "a share is for questions"
        self._begun()
        outcome = self._session.run(method, table, spend, purpose=purpose, once=self._charges.name())
        self._charges.answered([outcome.charge])
        return outcome

    def _answered(self, releases: Sequence[Release]) -> None:
        for each in releases:
            self._charges.answered(each.provenance.charges)
        self._begun()


def _sums(charges: Sequence[Charge]) -> dict[str, Guarantee]:
    sums: dict[str, Guarantee] = {}
    for each in charges:
        assert each.cost is not None
        sums[each.population] = sums[each.population] + each.cost if each.population in sums else each.cost
    return sums
