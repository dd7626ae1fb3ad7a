"""Owners who send once, encrypted and sealed: what plans and parties of a proxy and of a service provider have in common."""

import hashlib
import json
import threading
from abc import abstractmethod
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from cloister.crypto import AgreementKey, DeterministicCipher, SigningKey, WrongKey, canonical_json
from cloister.crypto.paillier import EncryptedVector, PublicKey, Slots
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.together.messages import pack, refused, unpack

_SEALED = 32
"""Bytes of the key that a message begins with."""
HEX, SAME = (bytes.hex, bytes.fromhex), (lambda given: given,) * 2


@dataclass(frozen=True, kw_only=True)
class SendingPlan:
    """What all parties agree on before anybody reads a row. Its hash is in every message, and every message is signed."""

    owners: Mapping[str, bytes]
    """By name, the public half of each owner's signing key."""
    seal: bytes
    """The public agreement key of whom they send to: fresh for each plan."""
    key: PublicKey
    proof: tuple[int, ...]
    """The key that they encrypt for, and its proof."""
    low: tuple[float, ...]
    high: tuple[float, ...]

    kind: ClassVar[str]
    format: ClassVar[int] = 1
    """Another number for each meaning that the parts of a plan ever had: parties of two versions refuse each other by it."""
    whose: ClassVar[str]
    """What is said of a key whose proof does not hold."""
    more: ClassVar[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]]
    """What plans of this kind agree on besides: how it is written as plain data, and read."""

    @property
    @abstractmethod
    def length(self) -> int:
        """How many numbers an owner sends."""

    @property
    @abstractmethod
    def slots(self) -> Slots:
        """How they lie in ciphertexts."""

    @property
    def _agreed(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "owners": {name: key.hex() for name, key in self.owners.items()},
            "seal": self.seal.hex(),
            "bounds": [[float(each).hex() for each in side] for side in (self.low, self.high)],
            **{name: write(getattr(self, name)) for name, (write, _) in self.more.items()},
        }

    @property
    def agreed(self) -> bytes:
        """A digest of all but the key and its proof: what a key can be made for."""
        return hashlib.sha256(canonical_json(self._agreed).encode()).digest()

    @cached_property
    def text(self) -> str:
        """All of it, as one text."""
        return canonical_json({**self._agreed, "key": self.key.to_json(), "proof": [f"{each:x}" for each in self.proof]})

    @property
    def id(self) -> str:
        """By which messages name it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Back from its text; whatever is none is refused."""
        try:
            told = json.loads(text)
            low, high = (tuple(float.fromhex(each) for each in side) for side in told["bounds"])
            found = cls(
                owners={name: bytes.fromhex(key) for name, key in told["owners"].items()},
                seal=bytes.fromhex(told["seal"]),
                key=PublicKey.from_json(told["key"]),
                proof=tuple(int(each, 16) for each in told["proof"]),
                low=low,
                high=high,
                **{name: read(told[name]) for name, (_, read) in cls.more.items()},
            )
            if told["format"] != cls.format or found.text != text:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError):
            raise InvalidParameter("The plan is invalid", why="it is no text of a plan", instead=f"{cls.__name__}.text") from None
        return found

    def cipher(self, key: AgreementKey, other: bytes) -> DeterministicCipher:
        """Of a message of an owner: a key for each message, and one text under it."""
        return DeterministicCipher(key.shared(other, f"cloister together {self.kind} 1 {self.id}".encode(), 64))

    def vector_in(self, text: bytes, counts: Container[int], *, blinds: int = 0) -> EncryptedVector:
        """The sum of so many owners' vectors that a message has; ValueError or `InvalidParameter` for none of this plan."""
        found = EncryptedVector.from_json(text.decode(), self.key)
        if (found.length, found.slots, found.blinds) != (self.length, self.slots, blinds) or found.count not in counts:
            raise ValueError
        return found

    def check_key(self) -> None:
        """Refuse a key whose proof does not hold."""
        if not self.key.check(self.proof):
            raise InvalidParameter(
                self.whose, why="its proof does not hold, or it is short", instead="Paillier.generate(2048).prove()"
            )


Plan = TypeVar("Plan", bound=SendingPlan)


class Sender(Generic[Plan]):
    """One owner. It gives the same bytes if it is asked again, or by two at once: a second draw would be a second answer."""

    def __init__(self, plan: Plan, name: str, key: SigningKey, random: Random | None) -> None:
        if plan.owners.get(name) != key.public:
            why, instead = "the plan has no such owner, or another key for it", "its own name and key"
            raise InvalidParameter(f"The owner {name!r} is invalid", why=why, instead=instead)
        plan.check_key()
        plan.cipher(AgreementKey.generate(), plan.seal)  # a seal that hides nothing is refused here, before a charge
        self.plan, self.name, self._key, self._random = plan, name, key, random
        self._sent: bytes | None = None
        self._once = threading.Lock()

    def _sealed(self, found: EncryptedVector) -> bytes:
        once = AgreementKey.generate(self._random)
        cipher = self.plan.cipher(once, self.plan.seal)
        sealed = once.public + cipher.encrypt(found.to_json().encode(), [self.name.encode()])
        return pack("moments", self.plan.id, self.name, self._key, sealed)


class Receiver(Generic[Plan]):
    """Whom owners send to: who can open the seals."""

    def __init__(self, plan: Plan, name: str, key: SigningKey, seal: AgreementKey, random: Random | None) -> None:
        if (getattr(plan, name), plan.seal) != (key.public, seal.public):
            raise InvalidParameter(f"The {name}'s keys are invalid", why="the plan has others", instead="the keys of the plan")
        self.plan, self._name, self._key, self._seal, self._random = plan, name, key, seal, random
        self._digests: dict[str, bytes] = {}
        self._once = threading.RLock()
        """A message is in what was sent or is refused: two sums whose difference it is would show it alone."""

    def take(self, data: bytes) -> str:
        """An owner's message; its name. The same again changes nothing; `RoundRefused` for anything else."""
        with self._once:
            return self._taken(data)

    def _taken(self, data: bytes) -> str:
        plan = self.plan
        message = unpack(data, "moments", plan.id, plan.owners)
        digest = hashlib.sha256(data).digest()
        if message.sender in self._digests:
            if self._digests[message.sender] != digest:
                raise refused(f"{message.sender!r} sent another before", "its first message")
            return message.sender
        self._check_open()
        try:
            text = plan.cipher(self._seal, message.body[:_SEALED]).decrypt(message.body[_SEALED:], [message.sender.encode()])
            found = plan.vector_in(text, [1])
        except (WrongKey, InvalidParameter, ValueError):
            raise refused(f"what {message.sender!r} sent has another form", "the message as the owner wrote it") from None
        self._add(found)
        self._digests[message.sender] = digest
        return message.sender

    def _packed(self, kind: str, body: bytes) -> bytes:
        return pack(kind, self.plan.id, self._name, self._key, body)

    def _check_open(self) -> None:
        """Raises where no further message is taken."""

    @abstractmethod
    def _add(self, found: EncryptedVector) -> None:
        """Another owner's numbers."""
