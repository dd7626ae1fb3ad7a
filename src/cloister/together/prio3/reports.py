"""A report: one person's value in shares, one for each server, with a proof in shares that it is valid.

A server learns of a value that it is valid, and nothing else, as long as one other server keeps its share. *Proof sketch*
(Davis, Patton, Rosulek & Schoppmann 2023, Theorem 2): shares are uniform given the value; what servers tell one another of a
proof is a function of uniform numbers (`circuits.py`); blinds keep the random numbers that all derive from the shares from
telling them. ∎ Hash functions are modelled as random.

A client that lies moves the sum by at most what a valid value could, but for the chance of a false proof. A server that lies
can falsify the sum, and can drop reports; it learns no value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from Crypto.Hash import TurboSHAKE128

from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random
from cloister.noise.mechanism import set_fields
from cloister.together.messages import RoundRefused
from cloister.together.prio3.circuits import (
    Circuit,
    Count,
    Histogram,
    Sum,
    Vector,
    decide,
    drawn_for_query,
    proof_length,
    prove,
    query,
)

_VERSION, _PROOFS = 18, 1
_SEED = KEY_BYTES = 32
NONCE_BYTES = 16
MOST_SERVERS = 255


class _Usage(IntEnum):
    """What bytes are made for, as the draft numbers it."""

    VALUE, PROOF, JOINT, PROVE, QUERY, JOINT_SEED, JOINT_PART = range(1, 8)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a client sends: the public part to every server, and to each the share that is its own."""

    nonce: bytes
    public: bytes
    shares: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a server keeps while a report is checked: its share of the value, and the random numbers it was checked with."""

    share: tuple[int, ...]
    seed: bytes


@dataclass(frozen=True, init=False)
class Prio3:
    """Values of people, added up by servers none of which reads one. All parties agree on everything that is in it.

    Parameters
    ----------
    circuit: what may be sent: `Count()`, `Sum(largest=…)`, `Histogram(buckets=…)`.
    servers: how many; one that is honest is enough for privacy, all must answer for a sum.
    context: what the sum is about: shares of one context are useless in another.

    >>> from cloister.noise import Random
    >>> random = Random.deterministic(1)
    >>> ages = Prio3(Histogram(buckets=4), context=b"ages of 2026")
    >>> report = ages.report(2, random=random)
    >>> key = random.bytes(KEY_BYTES)
    >>> checks = [ages.check(key, place, report.nonce, report.public, share) for place, share in enumerate(report.shares)]
    >>> seed = ages.decided([said for _, said in checks])
    >>> shares = [ages.counted(state, seed) for state, _ in checks]
    >>> ages.circuit.field.add(*shares)
    [0, 0, 1, 0]
    """

    circuit: Circuit
    servers: int
    context: bytes

    def __init__(self, circuit: Circuit, *, servers: int = 2, context: bytes = b"") -> None:
        if not isinstance(circuit, Count | Sum | Histogram):
            raise InvalidParameter(f"circuit={circuit!r} is invalid", why="it says what may be sent", instead="Count()")
        if type(servers) is not int or not 2 <= servers <= MOST_SERVERS:
            raise InvalidParameter(f"servers={servers!r} is invalid", why=f"it is from 2 to {MOST_SERVERS}", instead="servers=2")
        if not isinstance(context, bytes) or len(context) > 1 << 15:
            raise InvalidParameter("context= is invalid", why="it is at most 32,768 bytes", instead='context=b"survey 7"')
        set_fields(self, circuit=circuit, servers=servers, context=context)

    @property
    def random_bytes(self) -> int:
        """How many random bytes a report is made of."""
        return _SEED * self.servers * (2 if self.circuit.joint else 1)

    def report(self, value: int, *, nonce: bytes | None = None, random: Random | None = None) -> Report:
        """One person's value in shares; `InvalidParameter` where it can't be sent."""
        drawn = random or default_random()
        return self._sharded(value, drawn.bytes(NONCE_BYTES) if nonce is None else nonce, drawn.bytes(self.random_bytes))

    def _sharded(self, value: int, nonce: bytes, drawn: bytes) -> Report:
        if not isinstance(nonce, bytes) or len(nonce) != NONCE_BYTES:
            raise InvalidParameter("nonce= is invalid", why=f"it is {NONCE_BYTES} bytes", instead="nonce=None")
        circuit, field = self.circuit, self.circuit.field
        encoded = circuit.encode(value)
        seeds = [drawn[at : at + _SEED] for at in range(0, len(drawn), _SEED)]
        *helpers, blind, prove_seed = seeds if circuit.joint else [*seeds[:-1], b"", seeds[-1]]
        pairs = list(zip(helpers[::2], helpers[1::2], strict=True)) if circuit.joint else [(each, b"") for each in helpers]
        first, parts = encoded, []
        for place, (seed, one_blind) in enumerate(pairs, 1):
            share = self._expanded(seed, _Usage.VALUE, bytes([place]), circuit.length)
            first = field.subtract(first, share)
            parts.append(self._part(place, one_blind, share, nonce))
        joint: Vector = []
        public = b""
        if circuit.joint:
            public = b"".join([self._part(0, blind, first, nonce), *parts])
            joint = self._joint(self._joint_seed(public))
        proof = prove(circuit, encoded, self._expanded(prove_seed, _Usage.PROVE, bytes([_PROOFS]), circuit.arity), joint)
        for place, (seed, _) in enumerate(pairs, 1):
            proof = field.subtract(proof, self._proof_share(place, seed))
        shares = [field.encode(first) + field.encode(proof) + blind, *(seed + one_blind for seed, one_blind in pairs)]
        return Report(nonce=nonce, public=public, shares=tuple(shares))

    def check(self, key: bytes, place: int, nonce: bytes, public: bytes, share: bytes) -> tuple[Checked, bytes]:
        """What server `place` keeps of a report, and what it tells the others. The servers share a `key` that clients don't know.

        `RoundRefused` for bytes that are no report.
        """
        _bytes_alone(key, nonce, public, share)
        try:
            return self._check(key, place, nonce, public, share)
        except ValueError as error:
            raise RoundRefused("A report is invalid", why=str(error), instead="report(value)") from None

    def _check(self, key: bytes, place: int, nonce: bytes, public: bytes, share: bytes) -> tuple[Checked, bytes]:
        circuit, field = self.circuit, self.circuit.field
        if len(nonce) != NONCE_BYTES or len(public) != (_SEED * self.servers if circuit.joint else 0):
            raise ValueError("its parts have other lengths")
        value, proof, blind = self._opened(place, share)
        joint: Vector = []
        seed = part = b""
        if circuit.joint:
            part = self._part(place, blind, value, nonce)
            seed = self._joint_seed(public[: _SEED * place] + part + public[_SEED * (place + 1) :])
            joint = self._joint(seed)
        drawn = self._expanded(key, _Usage.QUERY, bytes([_PROOFS]) + nonce, drawn_for_query(circuit))
        seen = query(circuit, value, proof, drawn, joint, self.servers)
        return Checked(share=tuple(circuit.decode(value)), seed=seed), field.encode(seen) + part

    def decided(self, said: Sequence[bytes]) -> bytes:
        """From what all servers said about a report, in their order: what each looks at; `RoundRefused` for a false proof."""
        circuit, field = self.circuit, self.circuit.field
        _bytes_alone(*said)
        seen, parts, length = [0] * (circuit.arity + 2), b"", field.size * (circuit.arity + 2)
        if len(said) != self.servers or any(len(each) != length + (_SEED if circuit.joint else 0) for each in said):
            raise _invalid("what its servers say of it has another length")
        for each in said:
            try:
                seen = field.add(seen, field.decode(each[:length]))
            except ValueError as error:
                raise _invalid(str(error)) from None
            parts += each[length:]
        if not decide(circuit, seen):
            raise _invalid("its proof is false")
        return self._joint_seed(parts) if circuit.joint else b""

    def counted(self, checked: Checked, seed: bytes) -> Vector:
        """A server's share of what the report adds to the sum; `RoundRefused` for other random numbers than agreed."""
        if checked.seed != seed:
            raise _invalid("its random numbers do not follow from its shares")
        return list(checked.share)

    def _opened(self, place: int, share: bytes) -> tuple[Vector, Vector, bytes]:
        """A server's share of value and proof, and its blind."""
        circuit, field = self.circuit, self.circuit.field
        blinds = _SEED if circuit.joint else 0
        numbers = _SEED if place else field.size * (circuit.length + proof_length(circuit))
        if not 0 <= place < self.servers or len(share) != numbers + blinds:
            raise ValueError("its share has another length")
        if place:
            value = self._expanded(share[:_SEED], _Usage.VALUE, bytes([place]), circuit.length)
            return value, self._proof_share(place, share[:_SEED]), share[_SEED:]
        found = field.decode(share[:numbers])
        return found[: circuit.length], found[circuit.length :], share[numbers:]

    def _proof_share(self, place: int, seed: bytes) -> Vector:
        return self._expanded(seed, _Usage.PROOF, bytes([_PROOFS, place]), proof_length(self.circuit))

    def _part(self, place: int, blind: bytes, share: Sequence[int], nonce: bytes) -> bytes:
        if not self.circuit.joint:
            return b""
        return self._hash(blind, _Usage.JOINT_PART, bytes([place]) + nonce + self.circuit.field.encode(share))(_SEED)

    def _joint_seed(self, parts: bytes) -> bytes:
        return self._hash(bytes(_SEED), _Usage.JOINT_SEED, parts)(_SEED)

    def _joint(self, seed: bytes) -> Vector:
        return self._expanded(seed, _Usage.JOINT, bytes([_PROOFS]), self.circuit.joint)

    def _expanded(self, seed: bytes, usage: _Usage, binder: bytes, length: int) -> Vector:
        """So many uniform numbers of the field: those of the stream that are below the modulus."""
        field, stream = self.circuit.field, self._hash(seed, usage, binder)
        found: Vector = []
        while len(found) < length:
            number = int.from_bytes(stream(field.size), "little")
            if number < field.modulus:
                found.append(number)
        return found

    def _hash(self, seed: bytes, usage: _Usage, binder: bytes) -> Callable[[int], bytes]:
        """A stream of bytes that follows from all of these: called with a number of bytes, it gives the next ones."""
        domain = bytes([_VERSION, 0]) + self.circuit.identifier.to_bytes(4, "big") + usage.to_bytes(2, "big") + self.context
        said = len(domain).to_bytes(2, "little") + domain + bytes([len(seed)]) + seed + binder
        stream: Callable[[int], bytes] = TurboSHAKE128.new(domain=1, data=said).read
        return stream


def _bytes_alone(*parts: object) -> None:
    if not all(isinstance(each, bytes) for each in parts):
        raise _invalid("one of its parts is not bytes")


def _invalid(why: str) -> RoundRefused:
    return RoundRefused("A report is invalid", why=why, instead="report(value)")
