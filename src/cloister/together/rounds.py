"""A secure sum: each site masks its numbers, and the hub learns the sum of those who stay to the end (Bonawitz et al. 2017).

    hub                                         site
    begin        what is asked                  keys     public keys of this round, signed under the roster
    all keys                                    shares   of its two secrets, one for each site, encrypted to it
    all shares   those for this site            masked   its numbers + its own mask ± a mask with each other site
    survivors    who sent masked numbers        signed   that set, once
    signatures   T of them, of the same set     opened   of each survivor a share of its own mask's seed, of each
                                                         that dropped out a share of the key of its masks with others

*Claim.* Let a hub that may lie, and up to t sites that follow the protocol and show it all they see, collude. What they
receive can be simulated from the roster, their own numbers, and the sum of the honest survivors' numbers alone; and that sum
is over one set of sites, of whom at least quorum − t are honest (`Roster.honest`): the hub chooses who is left out, so all t
colluders may be among the quorum. *Proof sketch.* (1) Keys of honest pairs are signed under the roster and bound to the
round, so they may be replaced by uniform ones, and so may the streams under them. (2) An honest site opens one share of each
site for one set of survivors, and only when T sites signed the same; with 2T > N + t there is one such set (`roster.py`), and
of no site are both secrets opened. (3) A site that is said to have dropped out although it sent its numbers keeps the seed of
its own mask: t shares of it are independent of it (`shamir.py`), and its message is uniform. (4) Of a survivor no mask key is
opened, and each two honest survivors have a uniform mask in common: their messages, less all that is opened, are uniform
given their sum. ∎ Assumptions: those of `crypto.identities`, `crypto.masking` and AES-SIV; SHA-256 hides a seed of 256 bits.
The masks' keys are derived from the round's id, H(protocol, roster, plan, number, size): masks of two plans have nothing in
common, even under the same keys, and never cancel.

*Not claimed.* A site can send wrong numbers, and a hub a wrong sum. Sums are modulo 2^(64·words): what wraps around is wrong,
and costs no privacy, since it is a function of the sum. Who took part, and when, is public. Who runs two sites counts as two.

The state of a site is on disk before its message leaves. A message that comes again, or several times at once, gets the same
bytes as answer; another one in its place is refused. Numbers are read once: a site that was stopped while it read them takes
no further part in the round.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cloister.crypto import AgreementKey, DeterministicCipher, SigningKey, WrongKey, canonical_json
from cloister.crypto.masking import add, add_mask, decoded, encoded
from cloister.errors import CloisterError, EngineError, InvalidParameter
from cloister.noise import default_random
from cloister.together.following import heard
from cloister.together.journal import READING, Journal, MemoryJournal
from cloister.together.messages import Message, RoundRefused, bundle, opened, pack, unbundled, unpack
from cloister.together.roster import PROTOCOL, Roster, SignedRoster
from cloister.together.shamir import SHARE_BYTES, joined, split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloister.noise import Random

HUB = "the hub"
STEPS = {"begin": "keys", "all keys": "shares", "all shares": "masked", "survivors": "signed", "signatures": "opened"}
"""What the hub sends, and what a site answers."""
_ORDER = tuple(STEPS)
_FIELDS = {
    "keys": ["channel", "mask", "seed"],
    "shares": ["to"],
    "masked": ["view"],
    "signed": ["survivors", "view"],
    "opened": ["view"],
}
"""What a site says in each answer beside its body."""
MOST_NUMBERS, MOST_WORDS = 1 << 26, 8
_SECRET = 32


@dataclass(frozen=True, kw_only=True)
class Round:
    """One sum: of what, over whom, and how wide.

    >>> signed = SignedRoster(Roster(sites={name: name.encode() * 32 for name in "abc"}, hub=bytes(32), missing=0), {})
    >>> Round(signed=signed, plan=b"a", numbers=2).id == Round(signed=signed, plan=b"b", numbers=2).id
    False
    """

    signed: SignedRoster
    """Over whom. Each party of the round checks all signatures: a hub could make up all sites but one."""
    plan: bytes
    """What is asked, as its one text; it names the charge."""
    numbers: int
    words: int = 1
    """Of how many words of 64 bits each number is, so that the sum fits by declared bounds."""
    number: int = 0
    """Which round of the plan."""

    def __post_init__(self) -> None:
        if not 1 <= self.numbers <= MOST_NUMBERS or not 1 <= self.words <= MOST_WORDS:
            raise InvalidParameter(
                f"A sum of {self.numbers} numbers of {self.words} words is not supported",
                why=f"there are from 1 to {MOST_NUMBERS:,} numbers of up to {64 * MOST_WORDS} bits",
                instead="several rounds",
            )

    @property
    def roster(self) -> Roster:
        """Who takes part."""
        return self.signed.roster

    @cached_property
    def id(self) -> str:
        """H(protocol, roster, plan, number, size)."""
        plan = hashlib.sha256(self.plan).hexdigest()
        about = [PROTOCOL, self.roster.digest, plan, self.number, self.numbers, self.words]
        return hashlib.sha256(canonical_json(about).encode()).hexdigest()

    def purpose(self, what: str, *names: str) -> bytes:
        """What a key of this round is for."""
        return canonical_json(["cloister together", what, self.id, *names]).encode()


class SiteRound:
    """One site in one round: each message of the hub is answered by one.

    `values` gives the site's numbers, with its share of the noise in them. It is called once, when the masks are agreed on.
    Before the site shows a key it calls `agree`, which refuses a plan by raising; and before it reads its numbers `settle`, which
    refuses what is not charged, or was read before under its charge.
    """

    def __init__(
        self,
        name: str,
        key: SigningKey,
        round_: Round,
        values: Callable[[], Any],
        *,
        journal: Journal,
        agree: Callable[[], object] | None = None,
        settle: Callable[[], object] | None = None,
        random: Random | None = None,
    ) -> None:
        round_.signed.check()
        self.name, self.round, self.roster = name, round_, round_.roster
        self._key, self._values, self._agree, self._settle = key, values, agree, settle
        self._journal = journal.of(round_.id)
        self._random = random or default_random()
        self._pair: tuple[AgreementKey, AgreementKey] | None = None
        if self.roster.sites.get(name) != key.public:
            raise _refused("this site's key is not in the roster", "the roster that this site signed")

    def answer(self, data: bytes) -> bytes:
        """The answer to a message of the hub: the same bytes for the same message; `RoundRefused` for what is not allowed."""
        message = unpack(data, None, self.round.id, {HUB: self.roster.hub})
        if message.kind not in STEPS:
            raise _refused(f"the hub sends no message of the kind {message.kind!r}", "the next message")
        digest = hashlib.sha256(canonical_json(dict(message.fields)).encode() + message.body).digest()
        with self._journal.locked():
            return self._answered(message, digest)

    def _answered(self, message: Message, digest: bytes) -> bytes:
        """One thread of one process at a time: what is looked up here is not changed by another before the answer is kept."""
        before = self._journal.get(message.kind)
        if before is not None:
            if before[:32] != digest:
                raise _refused(f"another message {message.kind!r} was answered before", "a new round, under a new charge")
            return before[32:]
        place = _ORDER.index(message.kind)
        if place and self._journal.get(_ORDER[place - 1]) is None:
            raise _refused(f"{message.kind!r} comes after {_ORDER[place - 1]!r}", "the messages in their order")
        try:
            found = getattr(self, "_" + message.kind.replace(" ", "_"))(message)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CloisterError):
                raise
            raise _refused("a message of the hub has a wrong form", "the message as the protocol has it") from None
        try:
            self._journal.put(message.kind, digest + found, once=True)
        except FileExistsError:  # on a disk whose locks don't hold
            raise _refused(f"{message.kind!r} was answered by another process of this site", "the same message again") from None
        for name in {"all shares": ("secrets", READING), "signatures": ("held",)}.get(message.kind, ()):
            self._journal.drop(name)
        if message.kind == "all shares":
            self._pair = None
        return bytes(found)

    # ── the steps, in their order ──────────────────────────────────────────────────────────────

    def _begin(self, message: Message) -> bytes:
        if self._journal.get(READING) is not None:
            raise _refused("this site read its rows in this round before", "a new round, under a new charge")
        if message.body != self.round.plan:
            raise _refused("the plan is another than the one that was agreed to", "the plan of this round")
        if self._agree is not None:
            self._agree()
        channel, mask = AgreementKey.generate(self._random), AgreementKey.generate(self._random)
        seed = self._random.bytes(_SECRET)
        self._journal.put("secrets", channel.secret + mask.secret + seed)
        return self._pack("keys", channel=channel.public.hex(), mask=mask.public.hex(), seed=_commitment(self.round, seed))

    def _all_keys(self, message: Message) -> bytes:
        keys = _keys_of(self.round, message.body)
        channel, mask, seed = self._secrets()
        if self.name not in keys or keys[self.name]["mask"] != mask.public.hex():
            raise _refused("this site's keys are missing or others", "the keys of all sites as they sent them")
        _check_quorum(self.roster, keys)
        points, threshold = [self.roster.points[name] for name in keys], self.roster.threshold
        shares = [split(secret, threshold, points, self._random) for secret in (seed, mask.secret)]
        texts = {name: b"".join(each[self.roster.points[name]] for each in shares) for name in keys}
        self._journal.put("secrets", channel.secret + mask.secret + seed + texts[self.name])
        self._journal.put("keys", hashlib.sha256(message.body).digest() + canonical_json(keys).encode())
        others = [name for name in keys if name != self.name]
        for name in others:
            self._common(mask, keys, name)  # a key that gives no mask is refused before anybody reads a row
        sealed = [self._channel(channel, keys, self.name, name).encrypt(texts[name], []) for name in others]
        return self._pack("shares", bundle(sealed), to=others)

    def _all_shares(self, message: Message) -> bytes:
        if self._journal.get(READING) is not None:
            raise _refused("this site was stopped while it read its rows", "a new round, under a new charge")
        kept = self._kept("keys")  # their signatures were checked when they were kept
        keys = json.loads(kept[32:])
        members = _in_order(self.roster, message.fields["of"], keys)
        _check_quorum(self.roster, members)
        others = [name for name in members if name != self.name]
        sealed = unbundled(message.body)
        if self.name not in members or len(sealed) != len(others):
            raise _refused("the shares for this site are not whole", "a share of each site that sent any")
        channel, mask, seed = self._secrets()
        held = {self.name: self._kept("secrets")[3 * _SECRET :]}
        for name, text in zip(others, sealed, strict=True):
            try:
                held[name] = self._channel(channel, keys, name, self.name).decrypt(text, [])
            except WrongKey:
                raise _refused(f"the share of {name!r} can't be opened", "the share as its site sent it") from None
        common = {name: self._common(mask, keys, name) for name in others}
        # from here on rows are read: whatever happens, they are not read again in this round
        try:
            self._journal.put(READING, b"", once=True)
        except FileExistsError:
            raise _refused("another process of this site reads its rows", "its answer") from None
        if self._settle is not None:
            self._settle()
        numbers = encoded(self._values(), words=self.round.words)
        if len(numbers) != self.round.numbers:
            raise _refused(f"this site has {len(numbers)} numbers, and the round {self.round.numbers}", "a plan of that size")
        add_mask(numbers, _stream_key(self.round, seed))
        for name in others:
            _add_common_mask(numbers, self.round, common[name], self.name, name)
        view = _view(kept[:32], members)
        self._journal.put("held", bundle([view.encode(), *(held[name] for name in members)]))
        self._journal.put("members", canonical_json(members).encode())
        return self._pack("masked", numbers.astype("<u8").tobytes(), view=view)

    def _survivors(self, message: Message) -> bytes:
        view, members, _ = self._held()
        survivors = _in_order(self.roster, message.fields["survivors"], members)
        _check_quorum(self.roster, survivors)
        if self.name not in survivors:
            raise _refused("this site is said to have dropped out", "a set that has it in it")
        return self._pack("signed", survivors=survivors, view=view)

    def _signatures(self, message: Message) -> bytes:
        view, members, held = self._held()
        own = unpack(self._kept("survivors")[32:], "signed", self.round.id, self.roster.sites)
        survivors = list(own.fields["survivors"])
        allowed = {name: self.roster.sites[name] for name in survivors}
        equal = {self.name}
        for each in unbundled(message.body):
            if len(equal) < self.roster.threshold:
                found = unpack(each, "signed", self.round.id, allowed)
                equal |= {found.sender} if found.fields == own.fields else set()
        if len(equal) < self.roster.threshold:
            raise _refused(
                f"{len(equal)} sites signed the set of survivors that this one did, and {self.roster.threshold} must",
                "one set for all sites",
            )
        parts = [held[name][:SHARE_BYTES] if name in survivors else held[name][SHARE_BYTES:] for name in members]
        return self._pack("opened", b"".join(parts), view=view)

    # ── what a site keeps ──────────────────────────────────────────────────────────────────────

    def _secrets(self) -> tuple[AgreementKey, AgreementKey, bytes]:
        kept = self._kept("secrets")
        if self._pair is None:  # with what they agreed on
            self._pair = AgreementKey(kept[:32]), AgreementKey(kept[32:64])
        return *self._pair, kept[64:96]

    def _held(self) -> tuple[str, list[str], dict[str, bytes]]:
        members: list[str] = json.loads(self._kept("members"))
        view, *shares = unbundled(self._kept("held"))
        return view.decode(), members, dict(zip(members, shares, strict=True))

    def _kept(self, name: str) -> bytes:
        found = self._journal.get(name)
        if found is None:
            raise _refused("what this site kept of the round is gone", "a new round, under a new charge")
        return found

    def _channel(self, own: AgreementKey, keys: Mapping[str, Any], sender: str, to: str) -> DeterministicCipher:
        """The cipher of what one site sends another: a key for each direction, and one text under it."""
        other = to if sender == self.name else sender
        public = bytes.fromhex(keys[other]["channel"])
        try:
            return DeterministicCipher(own.shared(public, self.round.purpose("share", sender, to), 64))
        except InvalidParameter:
            raise _no_key(other) from None

    def _common(self, mask: AgreementKey, keys: Mapping[str, Any], other: str) -> bytes:
        """The key of the mask in common with another site."""
        try:
            return _common_key(self.round, mask, keys, self.name, other)
        except InvalidParameter:
            raise _no_key(other) from None

    def _pack(self, kind: str, body: bytes = b"", **fields: Any) -> bytes:
        return pack(kind, self.round.id, self.name, self._key, body, **fields)


class HubRound:
    """The hub in one round: it relays, waits as long as it likes, and adds.

    `messages` are to be sent now; `take` takes an answer; `advance` goes on with those that answered. `declared`: see `Site`.
    A hub that was stopped takes the answers that its `journal` keeps (`before`): sites go on with the set that they were told.
    """

    def __init__(
        self, key: SigningKey, round_: Round, declared: Mapping[str, str] | None = None, journal: Journal | None = None
    ) -> None:
        round_.signed.check()
        self._journal = journal
        self._declared = {name: {"declared": digest} for name, digest in (declared or {}).items() if digest}
        self.round, self.roster, self._key = round_, round_.roster, key
        if self.roster.hub != key.public:
            raise _refused("the hub's key is not the one in the roster", "the hub's own roster")
        self.step = "begin"
        self._any = AgreementKey.generate()
        self.awaited = list(self.roster.sites)
        self._taken: dict[str, tuple[bytes, Message]] = {}
        self._keys: dict[str, Any] = {}
        self._members: list[str] = []
        self._view = ""
        self._sum: NDArray[np.uint64] | None = None
        self._messages = {name: self._pack("begin", round_.plan, **self._declared.get(name, {})) for name in self.awaited}

    @property
    def messages(self) -> Mapping[str, bytes]:
        """What each site is sent in this step; again if it asks again."""
        return self._messages

    @property
    def before(self) -> list[bytes]:
        """The answers with which this step ended, before the hub was stopped."""
        found = None if self._journal is None else self._journal.get(self.step)
        return [] if found is None else unbundled(found)

    def take(self, data: bytes) -> str:
        """An answer of this step; the name of its site. The same again changes nothing; `RoundRefused` for anything else."""
        allowed = {name: self.roster.sites[name] for name in self.awaited}
        message = unpack(data, STEPS[self.step], self.round.id, allowed)
        if message.sender in self._taken:
            if self._taken[message.sender][0] != data:
                raise _refused(f"{message.sender!r} answered otherwise before", "its first answer")
            return message.sender
        try:
            self._check(message)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CloisterError):
                raise
            raise _refused(f"the answer of {message.sender!r} has a wrong form", "the answer as the protocol has it") from None
        self._taken[message.sender] = (data, message)
        return message.sender

    def advance(self) -> bool:
        """Go on to the next step with those that answered; False when the sum is known. `RoundRefused` below the quorum."""
        answered = [name for name in self.roster.sites if name in self._taken]
        least = self.roster.threshold if self.step in ("survivors", "signatures") else self.roster.quorum
        if len(answered) < least:
            raise _refused(
                f"{len(answered)} of {len(self.roster.sites)} sites answered, and {least} must", "a round with more sites"
            )
        if self._journal is not None and self.step != _ORDER[-1]:
            with suppress(FileExistsError):  # it was kept before
                self._journal.put(self.step, bundle(self._taken[name][0] for name in answered), once=True)
        taken, self._taken = self._taken, {}
        step, self.step = self.step, _ORDER[min(_ORDER.index(self.step) + 1, len(_ORDER) - 1)]
        if step == "begin":
            body = bundle(taken[name][0] for name in answered)
            self._keys = _keys_of(self.round, body)
            self._kept_keys, self.awaited = body, answered
            self._messages = dict.fromkeys(answered, self._pack("all keys", body))
        elif step == "all keys":
            self._members, self.awaited = answered, answered
            self._view = _view(hashlib.sha256(self._kept_keys).digest(), answered)
            to = {name: dict(zip(found.fields["to"], unbundled(found.body), strict=True)) for name, (_, found) in taken.items()}
            self._messages = {}
            for name in answered:
                shares = bundle(to[other][name] for other in answered if other != name)
                self._messages[name] = self._pack("all shares", shares, of=answered, **self._declared.get(name, {}))
        elif step == "all shares":
            self.awaited = answered
            self._masked = {name: taken[name][1].body for name in answered}
            self._messages = dict.fromkeys(answered, self._pack("survivors", survivors=answered))
        elif step == "survivors":
            self.awaited = list(self._masked)
            body = bundle(taken[name][0] for name in answered)
            self._messages = dict.fromkeys(self._masked, self._pack("signatures", body))
        else:
            self._sum = self._opened({name: found.body for name, (_, found) in taken.items()})
            self.awaited, self._messages = [], {}
            return False
        return True

    @property
    def survivors(self) -> list[str]:
        """Whose numbers are in the sum."""
        return list(self._masked)

    def total(self) -> NDArray[Any]:
        """The sum of the survivors' numbers, modulo 2^(64·words), nearest to 0."""
        if self._sum is None:
            raise _refused("the sum is not opened yet", "advance() until it says False")
        return decoded(self._sum)

    def _check(self, message: Message) -> None:
        names = {name: self.roster.sites[name] for name in self._keys}
        if sorted(message.fields) != _FIELDS[message.kind]:  # sites compare all that another signed
            raise ValueError
        if message.kind == "keys":
            _check_keys(message.fields)
            for each in ("channel", "mask"):
                try:  # under a key that no secret follows from, every other site would refuse the round
                    self._any.shared(bytes.fromhex(message.fields[each]), b"")
                except InvalidParameter:
                    raise _no_key(message.sender) from None
        elif message.kind == "shares":
            if list(message.fields["to"]) != [name for name in names if name != message.sender]:
                raise ValueError
            if [len(each) for each in unbundled(message.body)] != [2 * SHARE_BYTES + 16] * (len(names) - 1):
                raise ValueError
        elif message.fields["view"] != self._view:
            raise _refused(f"{message.sender!r} was told of other sites", "a new round")
        elif message.kind == "masked" and len(message.body) != 8 * self.round.numbers * self.round.words:
            raise _refused(f"{message.sender!r} sent {len(message.body)} bytes", f"{self.round.numbers} numbers")
        elif message.kind == "signed" and list(message.fields["survivors"]) != list(self._masked):
            raise _refused(f"{message.sender!r} signed another set of survivors", "the set that it was sent")
        elif message.kind == "opened" and len(message.body) != SHARE_BYTES * len(self._members):
            raise ValueError

    def _opened(self, parts: Mapping[str, bytes]) -> NDArray[np.uint64]:
        """The sum without masks, from the shares that were opened."""
        openers = list(parts)[: self.roster.threshold]
        total = np.zeros((self.round.numbers, self.round.words), dtype=np.uint64)
        for body in self._masked.values():
            add(total, np.frombuffer(body, dtype="<u8").reshape(total.shape).astype(np.uint64, copy=False))
        for place, name in enumerate(self._members):
            at = slice(place * SHARE_BYTES, (place + 1) * SHARE_BYTES)
            try:
                secret = joined({self.roster.points[opener]: parts[opener][at] for opener in openers})
            except ValueError:
                secret = b""
            if name in self._masked:
                if not secret or _commitment(self.round, secret) != self._keys[name]["seed"]:
                    raise _spoilt(name)
                add_mask(total, _stream_key(self.round, secret), subtract=True)
                continue
            mask = AgreementKey(secret) if secret else None
            if mask is None or mask.public.hex() != self._keys[name]["mask"]:
                raise _spoilt(name)
            for survivor in self._masked:  # what the one that dropped out would have added cancels what the survivor did
                key = _common_key(self.round, mask, self._keys, name, survivor)
                _add_common_mask(total, self.round, key, name, survivor)
        return total

    def _pack(self, kind: str, body: bytes = b"", **fields: Any) -> bytes:
        return pack(kind, self.round.id, HUB, self._key, body, **fields)


Ask: TypeAlias = Callable[[Mapping[str, bytes]], Iterable[bytes]]
"""Brings each site its message of one step, and gives the answers of those that answer, as they come."""


def run_round(
    hub: HubRound, sites: Mapping[str, Callable[[bytes], bytes | None]] | Ask, refusals: dict[str, CloisterError] | None = None
) -> NDArray[Any]:
    """A round with sites that can be called, one after another or all at once: the sum. A site that gives None, or refuses, has
    dropped out, and so has one whose answer is none, which is noted among the refusals.

    >>> from cloister.crypto import SigningKey
    >>> keys = {name: SigningKey.generate() for name in "abc"}
    >>> center = SigningKey.generate()
    >>> roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=center.public, missing=0)
    >>> round_ = Round(signed=SignedRoster.by(keys, roster), plan=b"counts of two cells", numbers=2)
    >>> sites = {name: SiteRound(name, key, round_, lambda: [3, -1], journal=MemoryJournal()) for name, key in keys.items()}
    >>> run_round(HubRound(center, round_), {name: site.answer for name, site in sites.items()}).tolist()
    [9, -3]
    """
    ask = sites if callable(sites) else partial(_in_turn, sites)
    going = True
    while going:
        for found in hub.before or ask(hub.messages):
            try:
                heard(hub.take(found))
            except RoundRefused as error:
                with suppress(RoundRefused):  # nobody's, where it is no message
                    name = opened(found).sender
                    (refusals if refusals is not None else {})[name] = EngineError(
                        f"The answer of the site {name!r} was refused",
                        why=error.why,
                        instead=f"the same question when {name!r} runs the hub's version of cloister",
                    )
        going = hub.advance()
    return hub.total()


def _in_turn(sites: Mapping[str, Callable[[bytes], bytes | None]], messages: Mapping[str, bytes]) -> Iterator[bytes]:
    for name, message in messages.items():
        try:
            found = sites[name](message)
        except RoundRefused:
            continue
        if found is not None:
            yield found


def secure_sum(numbers: Mapping[str, Any], *, missing: int = 0, words: int = 1) -> NDArray[Any]:
    """The sum of several parties' whole numbers by the protocol, all in this process: to try it, and to compare. Real parties
    are processes of their own.

    >>> secure_sum({"north": [1, 2], "south": [10, 20], "west": [100, 200]}).tolist()
    [111, 222]
    """
    keys, center = {name: SigningKey.generate() for name in numbers}, SigningKey.generate()
    roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=center.public, missing=missing)
    sizes = {np.size(each) for each in numbers.values()}
    if len(sizes) > 1:
        raise InvalidParameter("The numbers are invalid", why="parties have different numbers of them", instead="equal lengths")
    signed = SignedRoster.by(keys, roster)
    round_ = Round(signed=signed, plan=default_random().bytes(16), numbers=sizes.pop(), words=words)
    sites = {
        name: SiteRound(name, key, round_, partial(numbers.get, name), journal=MemoryJournal()) for name, key in keys.items()
    }
    return run_round(HubRound(center, round_), {name: site.answer for name, site in sites.items()})


def _keys_of(round_: Round, body: bytes) -> dict[str, Any]:
    """The public keys of a round by site, in the order of the roster, each signed by its site."""
    found = [unpack(each, "keys", round_.id, round_.roster.sites) for each in unbundled(body)]
    for each in found:
        _check_keys(each.fields)
    _in_order(round_.roster, [each.sender for each in found], round_.roster.sites)
    return {each.sender: each.fields for each in found}


def _check_keys(fields: Mapping[str, Any]) -> None:
    if sorted(fields) != ["channel", "mask", "seed"] or any(len(bytes.fromhex(each)) != 32 for each in fields.values()):
        raise ValueError


def _in_order(roster: Roster, names: Iterable[Any], among: Iterable[str]) -> list[str]:
    """Names of sites, each once, in the order of the roster, all of them among those."""
    given, allowed = list(names), set(among)
    if given != [name for name in roster.sites if name in set(given)] or not set(given) <= allowed:
        raise _refused("a list of sites has strangers, or is not in the order of the roster", "the sites of the step before")
    return given


def _check_quorum(roster: Roster, names: Iterable[str]) -> None:
    found = len(list(names))
    if found < roster.quorum:
        raise _refused(f"{found} of {len(roster.sites)} sites are left, and {roster.quorum} must be", "a round with more sites")


def _view(keys: bytes, members: Sequence[str]) -> str:
    """What a site was told about the others (a digest of their keys, and who sent shares): it says so with its numbers and signs
    it with the survivors."""
    return hashlib.sha256(keys + canonical_json(list(members)).encode()).hexdigest()


def _commitment(round_: Round, seed: bytes) -> str:
    return hashlib.sha256(round_.purpose("seed") + seed).hexdigest()


def _stream_key(round_: Round, seed: bytes) -> bytes:
    return hashlib.sha256(round_.purpose("own mask") + seed).digest()


def _common_key(round_: Round, mask: AgreementKey, keys: Mapping[str, Any], own: str, other: str) -> bytes:
    """The key that two sites have in common. Both names are in it: a site that shows another's key as its own would otherwise
    have the very mask that the two honest ones have, and could cancel it."""
    return mask.shared(bytes.fromhex(keys[other]["mask"]), round_.purpose("mask", *sorted((own, other))))


def _add_common_mask(vector: NDArray[np.uint64], round_: Round, key: bytes, own: str, other: str) -> None:
    """What a site adds for another: the stream of their common key, with a sign by their places, so that both cancel."""
    add_mask(vector, key, subtract=round_.roster.points[own] > round_.roster.points[other])


def _refused(why: str, instead: str) -> RoundRefused:
    return RoundRefused("A step of the round was refused", why=why, instead=instead)


def _no_key(name: str) -> RoundRefused:
    return _refused(f"the key of {name!r} is invalid", "a round without that site")


def _spoilt(name: str) -> RoundRefused:
    return _refused(
        f"the shares of the secret of {name!r} do not fit together", "a new round; one of the sites changed its share"
    )
