"""Exact components or discriminants of several owners' rows with a crypto service provider that keeps keys and sees no data.

    the provider  makes a Paillier key and proves it; later it decrypts one vector of blinded sums, and garbles one circuit
    an owner      encrypts its moments (`Moments`), sealed to the user, and is done
    the user      multiplies the ciphertexts, blinds the product, evaluates the circuit, and signs the columns for the owners

Everybody has the same `ExactPlan`; its hash is in every message, and every message is signed. Messages are bytes; the circuit
runs over a `Transport`, such as TLS. After Al-Rubaie, Wu, Chang and Kung, "Privacy-preserving PCA on horizontally-partitioned
data", DSC 2017 (there the owner's products are neither symmetric nor packed).

**Not differentially private**: the columns are exact functions of all rows, and they leave by the marked door. An owner's `told`
is called with what they tell before a row is read: let it write a `NotPrivate` event, or raise.

Claim: if all follow the protocol, and user and provider don't pool what they see, the user learns the columns, the provider
nothing. The owners' messages are ciphertexts under the provider's key, inside a seal that the user alone opens: the provider, on
the wire, sees random bytes, and the user encryptions, simulated by those of noughts. The blinded sums are within length·2^−40 of
numbers that do not depend on the rows (`EncryptedVector.blinded`). The circuit shows its result alone (`protocol`). The user with
k owners learns what follows from the columns and the k owners' rows. ∎ All M columns with their eigenvalues would be the scatter:
values do not leave, and components are fewer than columns.

One key, one circuit: a user who entered other blinds, or left out owners, would have the components of other sums. So a provider
that has garbled takes no second message, the same one included; with a `journal`, which outlasts its process, nor one of another
plan under its key, into which the same ciphertexts would fit.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.crypto import AgreementKey, SigningKey
from cloister.crypto.masking import add_mask
from cloister.crypto.paillier import EncryptedVector, Paillier, Slots
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.together.circuits import BlindedSum, Moments, Transport, run_evaluator, run_garbler
from cloister.together.circuits.program import MOST_BYTES, Program
from cloister.together.journal import Journal, MemoryJournal
from cloister.together.messages import refused, unpack
from cloister.together.sending import HEX, SAME, Receiver, Sender, SendingPlan

_GARBLED = "garbled"
MOST_OWNERS = 10_000


@dataclass(frozen=True, kw_only=True)
class ExactPlan(SendingPlan):
    """What all parties agree on: owners send to the user, under the provider's key."""

    kind: ClassVar[str] = "exact"
    format: ClassVar[int] = 2  # in 1 the moments' rows were those of all owners
    whose: ClassVar[str] = "The provider's key is invalid"
    more: ClassVar = {"user": HEX, "provider": HEX, "moments": (asdict, lambda told: Moments(**told)), "components": SAME}

    user: bytes
    provider: bytes
    moments: Moments
    components: int = 0
    """None: the discriminants of the classes."""

    def __post_init__(self) -> None:
        signing = [*self.owners.values(), self.user, self.provider]
        if not 1 <= len(self.owners) <= MOST_OWNERS or len(set(signing)) < len(signing):
            raise InvalidParameter(
                "The parties are invalid",
                why=f"1 to {MOST_OWNERS} owners, a key for each party",
                instead="a key of its own for each",
            )
        self.moments.together(len(self.owners))
        features = self.moments.features
        fits = len(self.low) == len(self.high) == features
        if not fits or not all(-1e100 < one < other < 1e100 for one, other in zip(self.low, self.high, strict=True)):
            raise InvalidParameter(
                "The bounds are invalid", why=f"{features} columns have a low below a high each", instead="low=(0.0, …)"
            )
        if not 0 <= self.components < features or bool(self.components) == bool(self.moments.classes):
            raise InvalidParameter(
                f"components={self.components!r} is invalid",
                why="rows with classes have discriminants, others fewer components than columns",
                instead="components=1",
            )

    @cached_property
    def sums(self) -> BlindedSum:
        """How the sum goes into the circuit."""
        return self.moments.sums(len(self.owners))

    @cached_property
    def program(self) -> Program:
        """What is computed: `str` says gates, bytes and seconds, before anything runs."""
        return self.moments.program(self.components, len(self.owners))

    @property
    def tells(self) -> str:
        """What leaves, in words for an owner."""
        number = self.components or self.moments.classes - 1
        kind = "principal components" if self.components else "discriminant components"
        return (
            f"{number} {kind} of {self.moments.features} columns, exact, of the rows of {len(self.owners)} owners: "
            "not differentially private; the user with other owners learns what follows about yours"
        )

    @property
    def length(self) -> int:
        """How many moments an owner sends."""
        return self.moments.length

    @property
    def slots(self) -> Slots:
        """How they lie in ciphertexts."""
        return self.sums.slots

    def columns_in(self, data: bytes) -> npt.NDArray[np.float64]:
        """What the user has found, at an owner: `RoundRefused` unless the user of this plan signed it for this plan."""
        message = unpack(data, "columns", self.id, {"user": self.user})
        count = self.components or self.moments.classes - 1
        try:
            found = np.frombuffer(message.body, dtype="<f8").reshape(self.moments.features, count)
            if not np.isfinite(found).all():
                raise ValueError
        except ValueError:
            raise refused("it has no columns of this plan", "the message as the user wrote it") from None
        return found

    def project(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """An owner's own rows along them, scaled to [−1, 1] by the bounds of the plan. Projected rows are rows."""
        low, high = np.array(self.low), np.array(self.high)
        unit = np.clip((np.asarray(rows, dtype=np.float64) - low) / (high - low) * 2 - 1, -1, 1)
        return np.asarray(unit @ np.asarray(columns, dtype=np.float64))


class SendingOwner(Sender[ExactPlan]):
    """One owner, who sends once and is offline then. `told` is called with what leaves before a row is read.

    `shared` has a secret with each other owner, for this plan alone. Their streams are added to the numbers, modulo N, by one of
    the two, and taken off by the other: ciphertexts of fewer than all owners are of uniform numbers then, whoever adds or opens
    them, and those of all are of the sum. Proof: each sum of some owners but not all holds the stream of a secret that one in it
    has with one who is not, once; a number plus a uniform one modulo N is uniform (128 bits more than N has are reduced). ∎
    """

    def __init__(
        self,
        plan: ExactPlan,
        name: str,
        key: SigningKey,
        *,
        told: Callable[[str], object],
        shared: Mapping[str, bytes] | None = None,
        random: Random | None = None,
    ) -> None:
        super().__init__(plan, name, key, random)
        self._told, self._shared = told, dict(shared or {})

    def message(self, rows: npt.ArrayLike, labels: npt.ArrayLike | None = None) -> bytes:
        """For the user. A class that the owner has no row of is noughts like any other number. Asked again it gives the same
        bytes, whatever the rows: what was sent is what counts."""
        with self._once:
            if self._sent is None:
                self._told(self.plan.tells)
                self._sent = self._made(rows, labels)
            return self._sent

    def _made(self, rows: npt.ArrayLike, labels: npt.ArrayLike | None) -> bytes:
        plan = self.plan
        numbers = plan.moments.of_rows(rows, plan.low, plan.high, labels)
        found = plan.key.encrypt(numbers, slots=plan.slots, random=self._random)
        masks = [0] * len(found.cells)
        words = plan.key.bits // 64 + 3
        for other, secret in self._shared.items():
            stream = np.zeros((len(masks), words), dtype=np.uint64)
            add_mask(stream, secret)
            sign = 1 if self.name < other else -1
            masks = [mask + sign * int.from_bytes(row.tobytes(), "little") for mask, row in zip(masks, stream, strict=True)]
        return self._sealed(found.shifted(masks))


class DataUser(Receiver[ExactPlan]):
    """Who adds, blinds and evaluates; it has no key that reads."""

    def __init__(self, plan: ExactPlan, key: SigningKey, seal: AgreementKey, *, random: Random | None = None) -> None:
        super().__init__(plan, "user", key, seal, random)
        self._sent: list[EncryptedVector] = []
        self._asked: tuple[bytes, npt.NDArray[Any]] | None = None

    def _add(self, found: EncryptedVector) -> None:
        self._sent.append(found)

    def blinded(self) -> bytes:
        """For the provider, once all owners have sent. The same bytes if asked again."""
        with self._once:
            if self._asked is None:
                if missing := len(self.plan.owners) - len(self._sent):
                    raise refused(f"{missing} owners have not sent", "the messages of all owners")
                hidden, blinds = EncryptedVector.total(self._sent).blinded(random=self._random)
                self._asked = self._packed("blinded", hidden.to_json().encode()), blinds
            return self._asked[0]

    def evaluate(self, transport: Transport, *, most: int = MOST_BYTES) -> npt.NDArray[Any]:
        """The columns, by the circuit that the provider garbles at the other end. One of more than `most` bytes is refused first,
        with its size and time."""
        self.plan.program.check_size(most)
        self.blinded()
        assert self._asked is not None
        values = {"blinds": self.plan.sums.residues(self._asked[1])}
        return run_evaluator(self.plan.program, values, transport, most=most, random=self._random)  # type: ignore[no-any-return]

    def signed(self, columns: npt.NDArray[Any]) -> bytes:
        """What was found, for the owners: `ExactPlan.columns_in` reads it."""
        return self._packed("columns", np.ascontiguousarray(columns, dtype="<f8").tobytes())


class ServiceProvider:
    """Who keeps the key, and garbles."""

    def __init__(
        self, plan: ExactPlan, keys: Paillier, key: SigningKey, *, journal: Journal | None = None, random: Random | None = None
    ) -> None:
        if plan.provider != key.public or plan.key.digest != keys.public.digest:
            raise InvalidParameter("The provider's keys are invalid", why="the plan has others", instead="the keys of the plan")
        self.plan, self._keys, self._random = plan, keys, random
        self.journal = journal or MemoryJournal()

    def garble(self, data: bytes, transport: Transport, *, most: int = MOST_BYTES) -> None:
        """Decrypt the user's message and garble, once. It learns nothing. `most` as for the user: the key is not used up by a
        circuit that is refused for its size."""
        plan = self.plan
        plan.program.check_size(most)
        message = unpack(data, "blinded", plan.id, {"user": plan.user})
        try:
            seen = self._keys.decrypt(plan.vector_in(message.body, [len(plan.owners)], blinds=1), exact=True)
        except (InvalidParameter, ValueError):
            raise refused("it is no blinded sum of this plan", "the message as the user wrote it") from None
        of_key = self.journal.of(plan.key.digest)
        with of_key.locked():
            if of_key.get(_GARBLED) is not None:
                raise refused("a circuit was garbled under this key, a second would be of other sums", "a plan with a new key")
            of_key.put(_GARBLED, plan.id.encode())
        run_garbler(plan.program, {"blinded": plan.sums.residues(seen)}, transport, most=most, random=self._random)
