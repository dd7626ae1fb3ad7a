"""The hub's part in exact components: it adds, blinds and evaluates, and hands the result to the sites."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.crypto import AgreementKey
from cloister.crypto.paillier import PublicKey
from cloister.errors import CloisterError, EngineError
from cloister.tables import PrivateTable
from cloister.together.circuits.moments import Moments
from cloister.together.coordinator import refusal
from cloister.together.exact.keys import PATIENCE
from cloister.together.exact.request import MOST_BYTES, SAME_VERSION, ExactRequest, Floats, declared_of
from cloister.together.following import heard
from cloister.together.messages import bundle, pack, refused, unbundled, unpack
from cloister.together.rounds import HUB
from cloister.together.service_provider import DataUser, ExactPlan

if TYPE_CHECKING:
    from cloister.together.coordinator import Coordinator
    from cloister.together.sealed.wire import KeyHolderLine

_MOST_ANSWER = 1 << 22


class _Through:
    """The circuit's messages, by steps through the mailbox of the key holder."""

    def __init__(self, line: KeyHolderLine, plan: ExactPlan, told: Callable[[int], None]) -> None:
        self._line, self._name, self._told = line, plan.id.encode(), told
        self._going, self._coming = list[bytes](), list[bytes]()
        self._number = self._received = self._idle = 0

    def send(self, message: bytes) -> None:
        """Waits until something is to be received."""
        self._going.append(message)

    def receive(self, most: int) -> bytes:
        """The next message."""
        while not self._coming:
            body = bundle([self._name, self._number.to_bytes(8, "big"), *self._going])
            found = self._line.exact("line", body, 1 << 24)
            self._going, self._number = [], self._number + 1
            self._coming = unbundled(found)[::-1]
            self._idle = 0 if self._coming else self._idle + 1
            self._received += len(found)
            self._told(self._received)
            if self._idle * PATIENCE > 600:
                raise EngineError("The circuit stopped", why="the key holder gave nothing for ten minutes", instead="a new order")
        message = self._coming.pop()
        if len(message) > most:
            raise refused("it is longer than any message that may come now", "the message as the protocol has it")
        return message


@contextlib.contextmanager
def _let_go(line: KeyHolderLine, agreed: bytes) -> Iterator[None]:
    """What is stopped or fails gives its place at the key holder to others at once, where the key holder can still be told."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(CloisterError):
            line.exact("stop", agreed)
        raise


@dataclass(frozen=True, kw_only=True)
class ExactLearning:
    """The hub's part in one order: `begin`, `columns`, `hand_out`.

    `tell` is given words of where it is, and may raise to stop it.
    """

    coordinator: Coordinator
    line: KeyHolderLine
    request: ExactRequest
    seal: AgreementKey
    name: str = ""
    """What the hub calls the table."""
    agreed: tuple[bytes, ...] = ()
    """What the sites answered, with a key each for the masks between them."""

    @classmethod
    def begin(
        cls,
        coordinator: Coordinator,
        line: KeyHolderLine,
        table: PrivateTable,
        *,
        columns: Sequence[str],
        label: str = "",
        components: int = 0,
        rows: int,
        purpose: str = "",
        who: str = "",
        name: str = "",
    ) -> ExactLearning:
        """A fresh key and plan, and each site asked in advance: the first refusal is raised when all owners were asked."""
        low, high, classes = declared_of(table, columns, label)
        roster, seal = coordinator.signed.roster, AgreementKey.generate()
        plan = ExactPlan(
            owners=dict(roster.sites),
            user=roster.hub,
            provider=line.holder,
            seal=seal.public,
            key=PublicKey(modulus=1, residue=1),
            proof=(),
            moments=Moments(features=len(columns), rows=rows, classes=classes),
            low=low,
            high=high,
            components=components if not classes else 0,
        )
        body = line.exact("key", plan.agreed, 1 << 16)
        with _let_go(line, plan.agreed):
            told = unpack(body, "exact key", None, {line.name: line.holder})
            try:
                said = json.loads(told.body)
                key, proof = PublicKey.from_json(said["key"]), tuple(int(each, 16) for each in said["proof"])
            except (ValueError, KeyError, TypeError, RecursionError):
                raise refused("the key holder's key has no form", "the key as it was made") from None
            if said.get("format") != plan.format:  # before a site is asked: the key is for a digest, which has no version in it
                raise refused(f"the key holder {line.name!r} makes keys for plans of another version", SAME_VERSION)
            plan = replace(plan, key=key, proof=proof)
            plan.check_key()
            how: dict[str, Any] = {"columns": tuple(columns), "label": label, "purpose": purpose, "who": who}
            request = ExactRequest(plan=plan, holder=line.name, signed=body, **how)
            found = cls(coordinator=coordinator, line=line, request=request, seal=seal, name=name)
            return replace(found, agreed=tuple(found._asked("exact", request.text).values()))

    def columns(self, tell: Callable[[str, float], None] = lambda *_: None) -> Floats:
        """Moments of all sites, then the circuit. `tell`: a stage and how far it is."""
        plan = self.request.plan
        with _let_go(self.line, plan.agreed):
            user = DataUser(plan, self.coordinator.key, self.seal)
            for answer in self._asked("exact moments", bundle([self.request.text, *self.agreed])).values():
                user.take(unpack(answer, "agreed", None, self.coordinator.signed.roster.sites).body)
            self.line.exact("circuit", bundle([plan.text.encode(), user.blinded()]))
            size = max(plan.program.bytes, 1)
            through = _Through(self.line, plan, lambda received: tell("circuit", min(received / size, 1.0)))
            return np.asarray(user.evaluate(through, most=MOST_BYTES), dtype=np.float64)

    def hand_out(self, columns: Floats) -> tuple[str, ...]:
        """The sites that took the result: one that is away now has it from the hub's owner."""
        user = DataUser(self.request.plan, self.coordinator.key, self.seal)
        body = bundle([self.request.text, user.signed(columns)])
        with contextlib.suppress(CloisterError):
            return tuple(self._asked("exact columns", body, needed=False))
        return ()

    def _asked(self, kind: str, body: bytes, *, needed: bool = True) -> dict[str, bytes]:
        """What all sites answer."""
        about, answers, refusals = hashlib.sha256(body).hexdigest(), dict[str, bytes](), list[CloisterError]()
        names, reads = self.coordinator.signed.roster.sites, kind == "exact moments"
        message = pack(kind, about, HUB, self.coordinator.key, body, table=self.name)
        with contextlib.closing(self.coordinator.ask(dict.fromkeys(names, message), about, _MOST_ANSWER, reads)) as found:
            for name, each, data in found:
                if each.kind == "agreed":
                    answers[name] = data
                    heard(name)
                else:
                    refusals.append(refusal(each))
        if needed and refusals:
            raise refusals[0]
        if needed and len(answers) < len(names):
            raise self.coordinator.silent(next(name for name in names if name not in answers), reads)
        return answers
