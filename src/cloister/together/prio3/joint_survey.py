"""A survey whose answers two servers add up, neither of which can read one: what it asks, and what a respondent's device sends.

The *leader* has the reports; the *helper*, at another institution, gets its shares of them through the leader, sealed to its key
(HPKE, RFC 9180: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, which every browser has). Each question is one sum of Prio3
under a context of its own. A sealed share is bound to its survey, its report and the public parts: whoever relays it can't put
it into another. `prio3.js` is the twin for browsers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter
from cloister.noise import default_random
from cloister.printable import is_text
from cloister.privacy.rational import exact_positive
from cloister.together.messages import RoundRefused
from cloister.together.prio3.circuits import Circuit, Count, Histogram, Sum
from cloister.together.prio3.reports import KEY_BYTES, NONCE_BYTES, Prio3

if TYPE_CHECKING:
    from Crypto.PublicKey.ECC import EccKey

    from cloister.noise import Random

MOST_QUESTIONS, MOST_OPTIONS, MOST_RANGE = 20, 200, 1_000_000
_KINDS = ("yes-no", "choice", "number")
_INFO = b"cloister joint survey 1"
_POINT = 65
"""Bytes of a public key of P-256, uncompressed."""


@dataclass(frozen=True, kw_only=True)
class JointQuestion:
    """One question: yes or no, one of several options, or a whole number of a range.

    >>> JointQuestion(text="Do you smoke?", kind="yes-no", epsilon="1").labels
    ('no', 'yes')
    """

    text: str
    kind: str
    epsilon: str
    """What the sum may say something about one respondent's answer, as an exact number."""
    options: tuple[str, ...] = ()
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        if not is_text(self.text, 500):
            raise _wrong("its text has 1 to 500 characters", '"Do you smoke?"')
        if self.kind not in _KINDS:
            raise _wrong(f"its kind is not one of {', '.join(_KINDS)}", "yes-no")
        fine = len(set(self.options)) == len(self.options) and all(is_text(each, 200) for each in self.options)
        if self.kind == "choice" and not (fine and 2 <= len(self.options) <= MOST_OPTIONS):
            raise _wrong(f"it has not 2 to {MOST_OPTIONS} different options, each of 1 to 200 characters", "walk\nbus\ncar")
        whole = all(type(each) is int and abs(each) <= 10**9 for each in (self.low, self.high))
        if self.kind == "number" and not (whole and 0 < self.high - self.low <= MOST_RANGE):
            raise _wrong(f"its range is not of whole numbers, low below high, at most {MOST_RANGE:,} apart", "0 to 100")
        if not is_text(self.epsilon, 60) or not 2**-40 <= self.circuit.changes / exact_positive(self.epsilon, "epsilon") <= 2**52:
            raise _wrong("its ε is longer than 60 characters, or its noise can't be added up", "1")

    @property
    def circuit(self) -> Circuit:
        """What may be sent."""
        if self.kind == "number":
            return Sum(largest=self.high - self.low)
        return Count() if self.kind == "yes-no" else Histogram(buckets=len(self.options))

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers that can be chosen; none where a number is asked."""
        return {"yes-no": ("no", "yes"), "choice": self.options, "number": ()}[self.kind]

    def value_of(self, answer: str | int) -> int:
        """An answer as Prio3 sends it."""
        if self.kind == "number":
            if type(answer) is not int or not self.low <= answer <= self.high:
                raise InvalidParameter(
                    f"The answer {answer!r} is invalid",
                    why=f"it is a whole number from {self.low} to {self.high}",
                    instead=f"{self.low}",
                )
            return answer - self.low
        if answer not in self.labels:
            raise InvalidParameter(
                f"The answer {answer!r} is invalid", why="it is not one of the options", instead=self.labels[0]
            )
        return self.labels.index(str(answer))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: what its kind needs."""
        found: dict[str, Any] = {"text": self.text, "kind": self.kind, "epsilon": self.epsilon}
        if self.kind == "choice":
            found["options"] = list(self.options)
        return found | ({"low": self.low, "high": self.high} if self.kind == "number" else {})

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> JointQuestion:
        """What `to_dict` wrote; `InvalidParameter` for anything else."""
        known = {"text": str, "kind": str, "epsilon": str, "options": list, "low": int, "high": int}
        if not isinstance(said, Mapping) or any(type(value) is not known.get(name) for name, value in said.items()):
            raise _wrong("its form is another", '{"text": "Do you smoke?", "kind": "yes-no", "epsilon": "1"}')
        if not {"text", "kind", "epsilon"} <= said.keys() or not all(type(each) is str for each in said.get("options", ())):
            raise _wrong("text, kind or ε is missing", '{"text": "Do you smoke?", "kind": "yes-no", "epsilon": "1"}')
        return cls(**{**said, "options": tuple(said.get("options", ()))})


@dataclass(frozen=True, kw_only=True)
class JointSurvey:
    """What both servers and every respondent's device agree on.

    >>> asked = JointQuestion(text="How do you come to work?", kind="choice", epsilon="1", options=("walk", "bus", "car"))
    >>> survey = JointSurvey(id="a1", title="Ways to work", questions=(asked,))
    >>> helper = new_helper_key()
    >>> report = survey.report(["bus"], public_of(helper))
    >>> len(survey.helper_shares(report, helper)), survey.epsilon
    (1, Fraction(1, 1))
    """

    id: str
    title: str
    questions: tuple[JointQuestion, ...]

    def __post_init__(self) -> None:
        if not is_text(self.title, 200):
            raise InvalidParameter("The title is invalid", why="it has 1 to 200 characters", instead='"Sleep and screens"')
        if not 1 <= len(self.questions) <= MOST_QUESTIONS:
            raise InvalidParameter(
                "The survey is invalid", why=f"it asks 1 to {MOST_QUESTIONS} questions", instead="one question"
            )

    @property
    def epsilon(self) -> Fraction:
        """What all sums together may say about one respondent."""
        return sum((exact_positive(each.epsilon, "epsilon") for each in self.questions), Fraction(0))

    @cached_property
    def sums(self) -> tuple[Prio3, ...]:
        """Of each question."""
        return tuple(Prio3(each.circuit, context=f"{self.digest} {place}".encode()) for place, each in enumerate(self.questions))

    @cached_property
    def text(self) -> str:
        """The one text of it that both servers know."""
        return json.dumps(self.to_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """What the contexts of its sums, and its sealed shares, are bound to."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"id": self.id, "title": self.title, "questions": [each.to_dict() for each in self.questions]}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> JointSurvey:
        """What `to_dict` wrote; `InvalidParameter` for anything else."""
        try:
            questions = tuple(JointQuestion.from_dict(each) for each in said["questions"][: MOST_QUESTIONS + 1])
            return cls(id=str(said["id"]), title=str(said["title"]), questions=questions)
        except (KeyError, TypeError):
            raise InvalidParameter("The survey is invalid", why="its form is another", instead="what its leader sent") from None

    def report(self, answers: Sequence[str | int], helper: bytes, *, random: Random | None = None) -> JointReport:
        """What a respondent's device sends: an answer to each question, in their order; `helper` is the helper's public key."""
        if len(answers) != len(self.questions):
            raise InvalidParameter("answers= is invalid", why="there is one for each question", instead='["bus", 7]')
        drawn = random or default_random()
        nonce = drawn.bytes(NONCE_BYTES)
        values = [question.value_of(answer) for question, answer in zip(self.questions, answers, strict=True)]
        made = [each.report(value, nonce=nonce, random=drawn) for each, value in zip(self.sums, values, strict=True)]
        public, own = tuple(each.public for each in made), tuple(each.shares[0] for each in made)
        sealed = _seal(helper, b"".join(each.shares[1] for each in made), self._about(nonce, public))
        return JointReport(nonce=nonce, public=public, shares=own, sealed=sealed)

    def helper_shares(self, report: JointReport, key: EccKey) -> list[bytes]:
        """The helper's share of each answer; `RoundRefused` where they were not sealed for this report of this survey."""
        found = _unseal(key, report.sealed, self._about(report.nonce, report.public))
        lengths = self._lengths
        if len(found) != sum(lengths):
            raise _refused("the shares under its seal have another length")
        return [found[begin:end] for begin, end in pairwise(accumulate(lengths, initial=0))]

    @property
    def _lengths(self) -> list[int]:
        """Of the helper's shares: a seed, and a blind where it is needed."""
        return [2 * KEY_BYTES if each.circuit.joint else KEY_BYTES for each in self.sums]

    @property
    def sealed_bytes(self) -> int:
        """How long the helper's shares are under its seal."""
        return _POINT + sum(self._lengths) + 16

    def _about(self, nonce: bytes, public: Sequence[bytes]) -> bytes:
        return self.digest.encode() + nonce + b"".join(public)


@dataclass(frozen=True, kw_only=True)
class JointReport:
    """One respondent's report: public parts and the leader's shares by question, and the helper's shares under its seal."""

    nonce: bytes
    public: tuple[bytes, ...]
    shares: tuple[bytes, ...]
    """Of the leader; the helper is given none."""
    sealed: bytes

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, in hexadecimal digits."""
        found: dict[str, Any] = {"nonce": self.nonce.hex(), "sealed": self.sealed.hex()}
        return found | {"public": [each.hex() for each in self.public], "shares": [each.hex() for each in self.shares]}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], survey: JointSurvey, *, shares: bool = True) -> JointReport:
        """What a device sent, of a form that this survey has; `shares`: with those of the leader."""
        try:
            nonce, sealed = bytes.fromhex(said["nonce"]), bytes.fromhex(said["sealed"])
            public, own = (tuple(bytes.fromhex(each) for each in said[name]) for name in ("public", "shares"))
        except (KeyError, TypeError, ValueError):
            raise _refused("its form is another") from None
        wanted = len(survey.questions)
        if len(nonce) != NONCE_BYTES or len(public) != wanted or len(own) != (wanted if shares else 0):
            raise _refused("it does not answer the questions of this survey")
        if len(sealed) != survey.sealed_bytes:
            raise _refused("its sealed shares have another length")
        return cls(nonce=nonce, public=public, shares=own, sealed=sealed)


def list_of(nonces: Sequence[bytes]) -> str:
    """The digest of the reports that a server counted, in no order."""
    return hashlib.sha256(b"".join(sorted(nonces))).hexdigest()


def new_helper_key() -> EccKey:
    """A helper's key for one survey."""
    from Crypto.PublicKey import ECC

    return ECC.generate(curve="p256")


def public_of(key: EccKey) -> bytes:
    """Its public half, as browsers read it."""
    return bytes(key.public_key().export_key(format="raw"))


def public_key(data: bytes) -> EccKey:
    """A public key from its bytes; `InvalidParameter` for other bytes."""
    from Crypto.PublicKey import ECC

    try:
        if len(data) != _POINT or data[0] != 4:
            raise ValueError
        return ECC.import_key(data, curve_name="p256")
    except ValueError:
        raise InvalidParameter(
            "The helper's key is invalid", why="it is not a point of P-256", instead="what cloister helper join prints"
        ) from None


def _seal(helper: bytes, shares: bytes, about: bytes) -> bytes:
    from Crypto.Protocol import HPKE

    cipher = HPKE.new(receiver_key=public_key(helper), aead_id=HPKE.AEAD.AES128_GCM, info=_INFO)
    return bytes(cipher.enc + cipher.seal(shares, about))


def _unseal(key: EccKey, sealed: bytes, about: bytes) -> bytes:
    from Crypto.Protocol import HPKE

    try:
        cipher = HPKE.new(receiver_key=key, aead_id=HPKE.AEAD.AES128_GCM, enc=sealed[:_POINT], info=_INFO)
        return bytes(cipher.unseal(sealed[_POINT:], about))
    except ValueError:
        raise _refused("its sealed shares were made for another report, survey or helper") from None


def _wrong(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The question is invalid", why=why, instead=instead)


def _refused(why: str) -> RoundRefused:
    return RoundRefused("A report is invalid", why=why, instead="what the survey's page makes")
