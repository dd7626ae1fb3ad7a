"""A sum of noisy moments through a proxy: owners who send once, a proxy who adds and reads nothing, a user who holds the key.

    the user      makes a Paillier key and proves it
    an owner      encrypts its moments with its share of the noise, sealed to the proxy, and is done
    the proxy     multiplies the ciphertexts, hides the product again and sends it to the user
    the user      decrypts one vector: the noisy sums

Everybody has the same `ProxyPlan`; its hash is in every message, and every message is signed. Messages are bytes: any transport
carries them. After "DPDPCA" (distributed differentially private PCA), with another inside: there the proxy draws all of the
noise, and a blind b takes the place of noise on v. That blind is a multiple of N, so v′ mod N is v mod N; and the proxy, who
knows its noise, takes it off the user's published vectors and has the exact scatter. Here everything that is decrypted has noise
in it that no party knows, so no blind is needed.

Guarantee, for one row more or less of any owner; parties follow the protocol and may pool all they see:

- towards the user with up to `colluders` owners: ρ-zCDP, so (ε, δ). Proof: they see the shares of the colluders and the
  decrypted sums. At least owners − missing messages are in these, so the shares of `honest` = owners − missing − colluders
  others are unknown (`noisy_moments`). The ciphertext is one of those sums under fresh randomness (`hidden_again`): it is
  simulated from them. ∎
- towards the proxy with any owners, without the user: nothing but who answered, if Paillier's ciphertexts and the seals hide
  what is in them. What a proxy sees is simulated by encrypting noughts. What the user publishes promises to it, and to its
  owners, what it promises to the user with these owners.
- towards the user *with* the proxy: `opened_guarantee`, ρ·honest. They open each message by itself, where its owner's share is
  all the noise. The seal is for the same reason: a user who listens on the wire would be such a pair.

One plan, one sum: a proxy that has sent it takes no other message, since a second sum would be the first and one owner's message.
Its seal is fresh for each plan, so what was sent under an equal one before is of another round.

Who does not follow it: a proxy that leaves out or multiplies messages shows the user more of an owner, up to the third case. So
does a user who makes a key that the proxy can open: the proof shows that N-th powers are different, and not that nobody knows the
factors or that h is an N-th power. More colluders than `colluders`: up to the third case. An owner that adds no noise is one of
them, and one that lies makes the sum wrong. A joint table (`JointTable`) asks for no such belief in its hub.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.crypto import AgreementKey, SigningKey
from cloister.crypto.paillier import EncryptedVector, Paillier, Slots
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import ZCDP, ApproxDP, exact, zcdp_within
from cloister.together.journal import Journal, MemoryJournal
from cloister.together.messages import refused, unpack
from cloister.together.noisy_moments import MOST_ROWS, VALUE_BITS, Floats, MomentNoise, NoisyMoments, moments_of
from cloister.together.sending import HEX, SAME, Receiver, Sender, SendingPlan

MOST_FEATURES, MOST_OWNERS, _TOTAL = 2000, 10_000, "total"


@dataclass(frozen=True, kw_only=True)
class ProxyPlan(SendingPlan):
    """What all parties agree on: owners send to the proxy, under the user's key."""

    kind: ClassVar[str] = "proxy"
    whose: ClassVar[str] = "The user's key is invalid"
    more: ClassVar = {
        "proxy": HEX,
        "radius": (lambda length: float(length).hex(), float.fromhex),
        **dict.fromkeys(("epsilon", "delta"), (str, exact)),
        **dict.fromkeys(("colluders", "missing"), SAME),
    }

    proxy: bytes
    """The public half of the proxy's signing key."""
    radius: float
    """Rows farther from the middle of the bounds count as drawn in to it."""
    epsilon: Fraction
    delta: Fraction
    colluders: int = 1
    """How many owners may tell the user what they see."""
    missing: int = 0
    """How many may stay away."""

    def __post_init__(self) -> None:
        number, hidden = len(self.owners), (self.colluders, self.missing)
        whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in hidden)
        if not 1 <= number <= MOST_OWNERS:
            raise InvalidParameter(
                f"{number} owners are not supported", why=f"from 1 to {MOST_OWNERS} are", instead="two or more"
            )
        if len(set(self.owners.values())) < number:
            raise InvalidParameter(
                "The owners are invalid", why="two have one key, and one would count as two", instead="a key for each owner"
            )
        if not whole or sum(hidden) >= number:
            raise InvalidParameter(
                f"colluders={self.colluders!r}, missing={self.missing!r} is invalid",
                why=f"of {number} owners at least one must be honest and present",
                instead="colluders=0" if number == 1 else "colluders=1",
            )
        if not 1 <= len(self.low) == len(self.high) <= MOST_FEATURES:
            raise InvalidParameter(
                f"{len(self.low)} lowest and {len(self.high)} highest values are not supported",
                why=f"each of 1 to {MOST_FEATURES} columns has one of both",
                instead="low=(0.0, …), high=(1.0, …)",
            )
        ends = np.array([self.low, self.high], dtype=np.float64)
        if not np.isfinite(ends).all() or (ends[0] > ends[1]).any() or np.abs(ends).max() > 1e100:
            raise InvalidParameter(
                "The bounds are invalid", why="one is no finite number, or they are the wrong way round", instead="bounds=(0, 1)"
            )
        if (ends[1] - ends[0]).max() < 1e-99:
            raise InvalidParameter("The bounds are invalid", why="no column has room between them", instead="bounds=(0, 1)")
        if not 1e-100 < self.radius < 1e102:  # squares of sums are floating-point numbers
            raise InvalidParameter(f"radius={self.radius!r} is invalid", why="it is a length above 0", instead="radius=1")
        _ = self.noise.shares  # noise that can't be made is refused here, before anybody is charged

    @property
    def least(self) -> int:
        """How many messages a sum has in it at least."""
        return len(self.owners) - self.missing

    @cached_property
    def noise(self) -> MomentNoise:
        """The noise that owners make."""
        rho = zcdp_within(epsilon=self.epsilon, delta=self.delta).rho
        return MomentNoise(features=len(self.low), rho=rho, honest=self.least - self.colluders)

    @property
    def guarantee(self) -> ApproxDP:
        """Towards the user with the colluders."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def opened_guarantee(self) -> ZCDP:
        """Towards the user with the proxy."""
        return self.noise.of_one_share

    @property
    def slots(self) -> Slots:
        """How moments lie in ciphertexts."""
        return Slots(bits=VALUE_BITS, terms=len(self.owners), blind=False)

    @property
    def length(self) -> int:
        """How many moments an owner sends."""
        return self.noise.numbers


class ProxyOwner(Sender[ProxyPlan]):
    """One owner. `charge` is called with the guarantee before a row is read; what it raises stops the owner."""

    def __init__(
        self,
        plan: ProxyPlan,
        name: str,
        key: SigningKey,
        *,
        charge: Callable[[ApproxDP], object] | None = None,
        random: Random | None = None,
    ) -> None:
        super().__init__(plan, name, key, random)
        self._charge = charge

    def message(self, rows: npt.ArrayLike) -> bytes:
        """For the proxy. The same bytes again if it is asked again: a second draw of noise would be a second answer."""
        with self._once:
            if self._sent is None:
                if self._charge is not None:
                    self._charge(self.plan.guarantee)
                    self._charge = None  # rows that are refused now may be mended: one plan and one noise, charged once
                self._sent = self._made(_rows(rows, len(self.plan.low)))
            return self._sent

    def _made(self, rows: Floats) -> bytes:
        plan = self.plan
        moments = moments_of(rows, np.array(plan.low), np.array(plan.high), plan.radius) + plan.noise.sample(self._random)
        return self._sealed(plan.key.encrypt(moments, slots=plan.slots, random=self._random))


class Proxy(Receiver[ProxyPlan]):
    """Who adds. It has no key that reads, and keeps the product alone. A `journal` outlasts its process: one sum still."""

    def __init__(
        self, plan: ProxyPlan, key: SigningKey, seal: AgreementKey, journal: Journal | None = None, random: Random | None = None
    ) -> None:
        super().__init__(plan, "proxy", key, seal, random)
        self._total: EncryptedVector | None = None
        self._kept = (journal or MemoryJournal()).of(plan.id)

    def _check_open(self) -> None:
        if self._kept.get(_TOTAL) is not None:
            raise refused("the sum was sent, and a second would show this message alone", "another plan")

    def _add(self, found: EncryptedVector) -> None:
        self._total = found if self._total is None else self._total + found

    def total(self) -> bytes:
        """For the user, once enough owners have answered. The same bytes if asked again, and no message is taken after it."""
        with self._once, self._kept.locked():
            if (sent := self._kept.get(_TOTAL)) is None:
                if self._total is None or len(self._digests) < self.plan.least:
                    why = f"{len(self._digests)} owners answered, and {self.plan.least} must"
                    raise refused(why, "the messages of the others")
                sent = self._packed("total", self._total.hidden_again(random=self._random).to_json().encode())
                self._kept.put(_TOTAL, sent)
            return sent


def read_total(plan: ProxyPlan, keys: Paillier, data: bytes) -> NoisyMoments:
    """What the user learns of the proxy's message."""
    message = unpack(data, "total", plan.id, {"proxy": plan.proxy})
    try:
        found = plan.vector_in(message.body, range(plan.least, len(plan.owners) + 1))
        steps = keys.decrypt(found, exact=True)
    except (InvalidParameter, ValueError):
        raise refused("it is no sum of this plan", "the total as the proxy wrote it, and the keys of the plan") from None
    low, high = np.array(plan.low), np.array(plan.high)
    return NoisyMoments.of_steps(
        steps, plan.noise, low=low, high=high, radius=plan.radius, owners=found.count, guarantee=plan.guarantee
    )


def _rows(given: npt.ArrayLike, features: int) -> Floats:
    """An owner's rows, checked at the owner."""
    try:
        found = np.asanyarray(given)  # dates would be counts of days
        rows = np.ma.filled(found.astype(np.float64), np.nan) if found.dtype.kind in "biufO" else np.empty(0)  # masked: missing
    except (TypeError, ValueError, OverflowError):
        rows = np.empty(0)
    if rows.ndim != 2 or rows.shape[1] != features or len(rows) > MOST_ROWS or not np.isfinite(rows).all():
        raise InvalidParameter(
            "The rows are invalid",
            why=f"they are numbers, none missing, in {features} columns, and at most {MOST_ROWS:,}",
            instead="rows without NaN or infinity, in the columns of the plan",
        )
    return rows
