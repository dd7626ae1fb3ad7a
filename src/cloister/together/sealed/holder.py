"""The key holder: it has the keys of batches and never a value, and gives sums of pads with its own whole noise inside.

The hub has masked cells c = x + F_k(position) modulo 2⁶⁴, the key holder has k. For a request with the linear map A, and a set S
of rows with each row at most once, the key holder gives r = A·Σ_S F − η, and the hub releases A·Σ_S c − r + η′; η and η′ are
each the whole noise that the request's laws state.

*Lemma.* Neighbours: one person's rows, or rows of zeros in their places, under the bounds of the format. (1) What the hub sees
for a charge, however it chose request and S, is a function of A·Σ_S x + η and of numbers that are independent of the rows: it
costs a person at most what the key holder's ledger charged. (2) What the key holder sees, the release included, is a function
of A·Σ_S x + η′, of the request, and of what it drew itself. *Proof.* (1) Pads are uniform and independent of all else to
whoever lacks k: no position is used twice (`batches.py`). So are the cells c, whatever x is; and r = A·Σ_S c − (A·Σ_S x + η). A
simulator that is given z = A·Σ_S x + η draws uniform numbers for c and says r = A·Σ_S c − z: the same distribution. It holds
for several charges at once, since each η is drawn for one charge. z is the mechanism that the laws promise: the key holder
works out by itself how far a person moves A·Σ x, for the very map that it applies, from the bounds that the sealed key is bound
to (`cost_of`; what is computed of a row it makes itself, of the format's columns: `sums.py`), refuses a row that is twice in S,
and charges that. A scaled map costs as much more; two subsets are two charges, each with noise of its own; one charge asked again
gives the same bytes. A person at k owners counts k times. (2) r and
η are its own, and the release less η is A·Σ_S x + η′. ∎ Rows stand in random places among rows of zeros (`Sealer`), so to add
or remove a person is to fill or empty their places, and the lemma holds for such neighbours too, but for the padded number of
rows and the places that were withdrawn: those are public. A row that takes another's place in a later batch is in no sum with it:
a batch is accepted after the one that it follows, so the key holder knows every withdrawal that comes before what it sums.
Batches that were sealed from the start again, or renewed, have the rows of those before once more: a sum has one of them.

Cells and pads are added modulo 2⁶⁴: post-processing. A hub that changes cells falsifies its own answer. Hub and key holder
together read everything. Blinding an encrypted value instead, so that the key holder adds noise to what it opens, holds for an
honest hub alone: Enc(1000·x + r) hides the noise (`tests/together/sealed`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from cloister.crypto import AgreementKey, Keyring, SigningKey, canonical_json, fingerprint, new_key, unseal
from cloister.errors import AccessDenied, BudgetExceeded, EngineError, InvalidDeclaration, UnsupportedQuery
from cloister.ledger import Ledger, Reservation
from cloister.noise import Random, default_random
from cloister.noise.shares import NoiseShares
from cloister.privacy import ZCDP, Guarantee, PureDP
from cloister.tables import Relation
from cloister.tables.engines.noised import NoisedRequest
from cloister.together.accounting import cost_of, with_besides
from cloister.together.journal import Journal, MemoryJournal
from cloister.together.plan import Plan
from cloister.together.reading import LONGEST, request_from
from cloister.together.reading_relations import Over
from cloister.together.sealed.batches import LONGEST_HEADER, Head, Ranges, in_order, joined, pad_sums, pages_of
from cloister.together.sealed.format import MaskedFormat
from cloister.together.sealed.sums import SumReader, sizes_of

MOST_ROWS = 1 << 27
"""In one request."""
MOST_PADS = 1 << 32
"""Of one request: less than a minute of work, which the hub waits for."""
MOST_BATCHES = 10_000
"""That a key holder keeps by itself, each a header on its disk: a hub can make more without end."""
_BATCHES, _FOLLOWERS, _WITHDRAWN, _RENEWED = "batches", "followers", "withdrawn", "renewed"
_PLAN, _ANSWER = "plan", "answer"
Note = Callable[[str, dict[str, str]], None]


@dataclass(frozen=True, kw_only=True)
class SealedPlan:
    """What the hub asks: a plan, and of each batch which rows.

    >>> asked = SealedPlan(plan=Plan(request="{}", token="7"), rows=(("ab", ((0, 1024),)),))
    >>> SealedPlan.read(asked.text) == asked
    True
    """

    plan: Plan
    rows: tuple[tuple[str, Ranges], ...]

    @property
    def text(self) -> bytes:
        """The one text of it."""
        return canonical_json({"plan": self.plan.text.decode(), "rows": self.rows}).encode()

    @classmethod
    def read(cls, text: bytes) -> SealedPlan:
        """Again from its text; `UnsupportedQuery` for one that no plan has, or that counts a row twice."""
        if len(text) > 2 * LONGEST:
            raise _refused("it is too long", "a shorter request")
        try:
            told = json.loads(text)
            rows = tuple((str(batch), tuple((first, after) for first, after in ranges)) for batch, ranges in told["rows"])
            found = cls(plan=Plan.read(told["plan"].encode()), rows=rows)
            whole = all(type(each) is int for _, ranges in rows for pair in ranges for each in pair)
            if not whole or found.text != text:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise _refused("its form is wrong", "the plan as its hub wrote it") from None
        ends = [[0, *(each for pair in ranges for each in pair)] for _, ranges in rows]
        if len({batch for batch, _ in rows}) < len(rows) or any(sorted(each) != each for each in ends):
            raise _refused("a row is in it twice, so that it would count twice", "each row once, in order")
        return found


class KeyHolder:
    """Holds the keys of batches. Its ledger charges each population that it was given a budget for, and no other.

    `owners` are the public keys of those who may bring batches of each population: a hub, or a stranger with this key holder's
    public key, could seal rows of its own that name somebody else's people, and spend their budget on them. Who takes a key off
    gets no more batches of it; those that were accepted stay. Without `owners`, whoever calls this object is one: no hub can.

    `a_day` is how many charges about each population it allows in 24 hours, `most_batches` how many batches it keeps: what it
    writes is bounded by the two, and what it refuses leaves nothing on its disk. A ledger or key that outlasts the process needs
    a journal in a folder beside it, so that no charge is drawn for twice. `note` is told what was accepted and charged.

    >>> holder = KeyHolder(budgets={"patients": PureDP(1)})
    >>> holder.spent("patients"), len(holder.public)
    (PureDP(epsilon='0'), 64)
    """

    def __init__(
        self,
        name: str = "key holder",
        *,
        budgets: Mapping[str, Guarantee] | None = None,
        owners: Mapping[str, Iterable[bytes]] | None = None,
        key: bytes | None = None,
        ledger: Ledger | None = None,
        journal: Journal | None = None,
        a_day: int = 1000,
        most_batches: int = MOST_BATCHES,
        random: Random | None = None,
        note: Note | None = None,
    ) -> None:
        if journal is None and (ledger is not None or key is not None):
            raise InvalidDeclaration(
                "The key holder has no journal",
                why="its ledger or its key outlasts the process, and after a restart it would draw for a charge again",
                instead="journal=Journal(folder)",
            )
        keys = Keyring(key or new_key(), domain="cloister key holder")
        self.name, self.a_day, self.most_batches, self.random = name, a_day, most_batches, random or default_random()
        self.signing = SigningKey(keys.derive("signing"))
        self._opening = AgreementKey(keys.derive("opening"))
        self.public = self.signing.public + self._opening.public
        self.ledger, self.journal, self.note = ledger or Ledger(), journal or MemoryJournal(), note or (lambda *_: None)
        self._readers: dict[str, SumReader] = {}
        self._heads: dict[str, Head] = {}
        self._withdrawn: dict[str, Ranges] = {}
        self._followers: dict[str, str] = {}
        self._firsts: dict[str, str] = {}
        self._retired: set[str] = set()
        self.budgets = dict(budgets or {})
        self.owners = None if owners is None else {each: {key.hex() for key in keys} for each, keys in owners.items()}
        for population, budget in self.budgets.items():
            known = population in self.ledger.populations()
            self.ledger.open(population, None if known else budget, who=name)

    def spent(self, population: str) -> Guarantee:
        """What its own ledger has charged."""
        return self.ledger.spent(population)

    def accept(self, data: bytes) -> str:
        """A batch's header and sealed key, which it keeps; the batch's name. Refused where the key is not sealed to it, or about
        another header, or where no owner of its population signed it."""
        head = Head(data=data)
        if len(data) > 2 * LONGEST_HEADER or not 0 < head.rows <= MOST_ROWS:
            raise _refused("a batch has no rows, or too many, or a long header", f"from 1 to {MOST_ROWS:,} rows a batch")
        key = self.key_of(head)
        population = self._known(head.format.population)
        kept = self.journal.of(_BATCHES)
        if head.id not in self._heads and kept.get(head.id) is None:
            self._check_owner(head, key)
            if len(kept.names()) >= self.most_batches:
                raise AccessDenied(
                    "The key holder denied a batch",
                    why=f"it keeps {self.most_batches:,} already",
                    instead="a larger batches = in csp.toml, by its operator",
                )
            self._follow(head)
            kept.put(head.id, data)
            self.note("accepted", {"batch": head.id, "population": population, "rows": str(head.rows)})
        self._heads[head.id] = head
        return head.id

    def _check_owner(self, head: Head, key: bytes) -> None:
        """Refuses a batch that none of the known owners signed, or that follows another one's."""
        if self.owners is None:
            return
        known = self.owners.get(head.format.population, set())
        if head.signer not in known or not head.is_signed(self._opening.public, key):
            raise AccessDenied(
                "The key holder denied a batch",
                why=f"no owner of the people {head.format.population!r} whose key it was given signed it",
                instead="the owner's public key in [owners] of csp.toml, by its operator",
            )
        for other in (self._head(batch) for batch in (head.after, *head.withdrawn) if batch):
            same = other.owner == head.owner and head.signer in (head.owner, other.signer)  # who renews follows its own alone
            if same or known.isdisjoint({other.owner, other.signer}):
                continue
            raise AccessDenied(
                "The key holder denied a batch", why="it follows batches of another owner", instead="batches of its own owner"
            )

    def _follow(self, head: Head) -> None:
        """What a batch withdraws is written down before it is accepted."""
        if not head.after:
            return
        others = [self._head(batch) for batch in (head.after, *head.withdrawn)]
        over = any(ranges and ranges[-1][1] > self._head(batch).rows for batch, ranges in head.withdrawn.items())
        if over or any(each.format.text != head.format.text for each in others):
            raise _refused("a batch follows others of another format, or withdraws rows that they don't have", "one format")
        followers, gone = self.journal.of(_FOLLOWERS), self.journal.of(_WITHDRAWN)
        with followers.locked():
            known = self._followers.get(head.after) or (followers.get(head.after) or b"").decode()
            if known not in ("", head.id):
                raise _refused(
                    "another batch follows the same one, so that a row may be in both", "the batches of the owner's newest state"
                )
            for batch, ranges in head.withdrawn.items():
                self._withdrawn[batch] = joined([*self.gone(batch), *ranges])
                gone.put(batch, canonical_json(self._withdrawn[batch]).encode())
            self._followers[head.after] = head.id
            followers.put(head.after, head.id.encode())

    def gone(self, batch: str) -> Ranges:
        """The rows of a batch that later ones withdrew, as far as it accepted them."""
        if batch not in self._withdrawn:
            kept = json.loads(self.journal.of(_WITHDRAWN).get(batch) or b"[]")
            self._withdrawn[batch] = tuple((first, after) for first, after in kept)
        return self._withdrawn[batch]

    def batches(self) -> list[Head]:
        """All that it accepted, each after the one that it follows."""
        kept = {name for name in self.journal.of(_BATCHES).names() if len(name) == 64}
        return in_order([self._head(name) for name in kept | self._heads.keys()])

    def retire(self) -> None:
        """Answers no new question about the batches that it has: their keys were renewed for another key holder, whose ledger
        counts from now on. Two that answer for the same rows would be two budgets."""
        for head in self.batches():
            self._retired.add(head.id)
            self.journal.of(_RENEWED).put(head.id, b"")

    def key_of(self, head: Head) -> bytes:
        """The key of a batch, opened."""
        return unseal(self._opening, head.sealed, head.about)

    def agreed(self, text: bytes, besides: Iterable[Guarantee] = ()) -> None:
        """Refuses in advance what it would refuse; nothing is charged. `besides`: what others cost a person with rows at one
        owner that would be under the same charge."""
        asked = self._read(text)
        if not asked.request.charge or not self.ledger.charges(asked.population, what=asked.about):  # it was agreed to
            self._allowed(asked, self._cost(asked), [_at_owners(each, asked.format.overlap) for each in besides])

    def answer(self, text: bytes) -> bytes:
        """The sums of pads with its noise inside, as the request's integers modulo 2⁶⁴, 8 bytes each: once for a charge. The same
        plan again gets the same bytes; another plan under the same charge is refused."""
        asked = self._read(text)
        about = asked.about
        if not asked.request.charge:
            raise _refused("it has no charge", "the request under its charge")
        if not self.journal.has(about):  # what is refused leaves nothing on the disk, not even a folder
            self._allowed(asked, self._cost(asked))
        kept, digest = self.journal.of(about), hashlib.sha256(text).hexdigest().encode()
        with kept.locked():
            plan, answer = kept.get(_PLAN), kept.get(_ANSWER)
            if plan not in (None, digest):
                raise _refused("another plan was asked under its charge", "a charge of its own for each plan")
            charges = self.ledger.charges(asked.population, what=about)
            settled = any(each.state == "settled" for each in charges)
            if (charges and plan is None) or (settled if answer is None else not charges):  # one of the two is an old copy
                raise EngineError(
                    "The key holder does not answer", why="it answered under this charge before", instead="a new question"
                )
            if answer is None:
                if not charges:
                    cost, plan_of = self._cost(asked), asked.plan
                    self._allowed(asked, cost)
                    kept.put(_PLAN, digest)
                    self.ledger.reserve({asked.population: cost}, who="the hub", what=about, purpose=plan_of.purpose, rerun=False)
                    said = {"about": about, "population": asked.population, "cost": str(cost), "rows": str(asked.rows)}
                    said |= {name: words for name, words in (("purpose", plan_of.purpose), ("who", plan_of.who)) if words}
                    with suppress(OSError):
                        self.note("charged", said)
                    charges = self.ledger.charges(asked.population, what=about)
                answer = self._drawn(asked)
                kept.put(_ANSWER, answer)  # on disk before it leaves; the noise is in no other text
            last = charges[-1]
            if last.state != "settled":
                assert last.cost is not None
                found = Reservation(id=last.id, costs={asked.population: last.cost}, who=last.who, what=about)
                self.ledger.settle(found, digest, marked=self.random.marked)
            return answer

    def _read(self, text: bytes) -> _Asked:
        sealed = SealedPlan.read(text)
        heads = [self._head(batch) for batch, _ in sealed.rows]
        if len({head.format.text for head in heads}) != 1:
            raise _refused("its batches are of different formats, or there are none", "batches of one format")
        rows = sum(after - first for _, ranges in sealed.rows for first, after in ranges)
        over = any(ranges and ranges[-1][1] > head.rows for head, (_, ranges) in zip(heads, sealed.rows, strict=True))
        if over or rows > MOST_ROWS:
            raise _refused("it asks for rows that its batches don't have, or too many", f"at most {MOST_ROWS:,} rows")
        if any(_overlap(ranges, self.gone(batch)) for batch, ranges in sealed.rows):
            raise _refused("it counts a row that its owner withdrew", "the rows that are left")
        firsts = {self._first(head) for head in heads}
        if len({self._head(batch).beginning for batch in firsts}) < len(firsts):
            raise _refused("its batches have the same rows twice, sealed again or renewed", "the batches of one beginning")
        declared = heads[0].format
        self._known(declared.population)
        request = request_from(sealed.plan.request, declared.columns, Over(table=declared.table))
        return _Asked(sealed.plan, request, tuple(heads), tuple(ranges for _, ranges in sealed.rows), rows)

    def _known(self, population: str) -> str:
        if population not in self.budgets:  # its ledger may know people whose budget the operator took back
            raise AccessDenied(
                "The key holder denied a request",
                why=f"it was given no budget for the people {population!r}",
                instead=f"budgets={{{population!r}: …}}, or [budgets] in csp.toml, by its operator",
            )
        return population

    def _first(self, head: Head) -> str:
        """The batch from which those begin that a batch follows."""
        passed = [head]
        while passed[-1].id not in self._firsts and passed[-1].after:
            passed.append(self._head(passed[-1].after))
        first = self._firsts.get(passed[-1].id, passed[-1].id)
        self._firsts.update({each.id: first for each in passed})
        return first

    def _head(self, batch: str) -> Head:
        if batch not in self._heads:
            named = len(batch) == 64 and set(batch) <= set("0123456789abcdef")
            data = self.journal.of(_BATCHES).get(batch) if named else None
            if data is None:
                raise _refused(f"the batch {batch[:12]!r} is not known here", "the batches that were shown to it")
            self._heads[batch] = Head(data=data)
        return self._heads[batch]

    def _cost(self, asked: _Asked) -> Guarantee:
        """What it costs a person with rows at as many owners as the format allows; refused where it has no cells for it."""
        declared = asked.format
        table = asked.request.table
        cost, reader = cost_of(asked.request, table if isinstance(table, Relation) else declared.table), self._reader(declared)
        made = sum(parts[-1][1] for ranges in asked.ranges for parts in pages_of(ranges).values())  # those before a row, too
        pads = sum(declared.numbers(declared.marginals[place]) for place in reader.needed(asked.request)) * made
        if pads > MOST_PADS:
            raise _refused(f"it takes {pads:,} pads", f"at most {MOST_PADS:,}: fewer rows, or smaller marginals")
        return _at_owners(cost, declared.overlap)

    def _allowed(self, asked: _Asked, cost: Guarantee, besides: Sequence[Guarantee] = ()) -> None:
        renewed = self.journal.of(_RENEWED)
        if any(head.id in self._retired or renewed.get(head.id) is not None for head in asked.heads):
            raise AccessDenied(
                "The key holder denied a request",
                why="the keys of these rows were renewed for another key holder",
                instead="the batches under its pads",
            )
        newest = max((each.when for each in self.ledger.charges(asked.population)), default=datetime.now(UTC))
        today = max(newest, datetime.now(UTC)).date()  # a clock that was set back opens nothing that had ended
        why = asked.format.refusal(asked.plan.purpose, today)
        if why:
            raise AccessDenied("The key holder denied a request", why=why, instead="a purpose that the owners allow")
        remaining = self.ledger.remaining(asked.population)
        cost = with_besides(cost, besides, remaining)
        if not cost <= remaining:
            raise BudgetExceeded(
                "The key holder refused a request",
                why=f"it costs {cost}, and {remaining} of the budget that the key holder keeps for {asked.population!r} is left",
                instead="a smaller spend=, or a budget that its operator raises; one in ρ takes Laplace and Gaussian noise",
            )
        since = datetime.now(UTC) - timedelta(days=1)
        if sum(each.when >= since for each in self.ledger.charges(asked.population)) + len(besides) >= self.a_day:
            raise AccessDenied(
                "The key holder denied a request",
                why=f"it allows {self.a_day:,} charges a day",
                instead="the same question tomorrow",
            )

    def _drawn(self, asked: _Asked) -> bytes:
        keys = [self.key_of(head) for head in asked.heads]

        def sums(place: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            parts = zip(keys, asked.ranges, strict=True)
            total = sum(pad_sums(key, asked.format, place, ranges) for key, ranges in parts)
            return np.asarray(total).view(np.int64)

        total = self._reader(asked.format).integers(asked.request, sums)
        total -= noise_of(asked.request, self.random)
        return total.astype("<u8").tobytes()

    def _reader(self, declared: MaskedFormat) -> SumReader:
        return self._readers.get(declared.text) or self._readers.setdefault(declared.text, SumReader(declared))

    def __repr__(self) -> str:
        return f"<KeyHolder {fingerprint(self.public)}>"


@dataclass(frozen=True)
class _Asked:
    plan: Plan
    request: NoisedRequest
    heads: Sequence[Head]
    ranges: Sequence[Ranges]
    rows: int

    @property
    def format(self) -> MaskedFormat:
        return self.heads[0].format

    @property
    def population(self) -> str:
        return self.format.population

    @property
    def about(self) -> str:
        """What is charged for it."""
        what = ["pads", self.plan.token, self.request.charge, self.request.number]
        return hashlib.sha256(canonical_json(what).encode()).hexdigest()


def _at_owners(cost: Guarantee, owners: int) -> Guarantee:
    """Of a person with rows at so many."""
    if isinstance(cost, ZCDP):
        return ZCDP(cost.rho * owners**2)
    assert isinstance(cost, PureDP)
    return PureDP(cost.epsilon * owners)


def noise_of(request: NoisedRequest, random: Random) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The whole noise of one of the two, for all integers of a request, modulo 2⁶⁴."""
    sizes, parts = sizes_of(request), []
    for each, size in zip(request.integers, sizes, strict=True):
        drawn = shares_of_two(each.law).share.sample(size, random=random)
        parts.append(np.array([int(one) % 2**64 for one in drawn], dtype=np.uint64))
    return np.concatenate(parts)


def shares_of_two(law: object) -> NoiseShares:
    """The noise of hub and key holder: either one's is enough by itself."""
    return NoiseShares(law=law, parties=2, honest=1)  # type: ignore[arg-type]


def _overlap(ranges: Ranges, gone: Ranges) -> bool:
    count = sum(after - first for first, after in (*ranges, *gone))
    return sum(after - first for first, after in joined([*ranges, *gone])) < count


def _refused(why: str, instead: str) -> UnsupportedQuery:
    return UnsupportedQuery("The key holder refused a plan", why=why, instead=instead)
