"""A key holder's part in exact components: a key for each plan, one circuit for each key, garbled step by step."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import TYPE_CHECKING

from cloister.crypto import SigningKey
from cloister.crypto.paillier import Paillier
from cloister.errors import AccessDenied, CloisterError, EngineError
from cloister.noise import Random, default_random
from cloister.together.circuits.protocol import QueueTransport
from cloister.together.exact.request import MOST_BYTES, key_text
from cloister.together.messages import bundle, pack, refused, unbundled
from cloister.together.service_provider import ExactPlan, ServiceProvider

if TYPE_CHECKING:
    from cloister.together.agent import Note

PATIENCE = 3.0
"""Seconds that a step waits for the circuit."""
_MOST_KEYS, _MOST_CIRCUITS, _IDLE = 16, 2, 600.0
"""Keys that wait for a plan; circuits at a time, with those whose key was made; seconds after which one that nobody asks for is
given up."""
_PIECES, _MOST_COMING = 12, 64
"""Messages that a step brings, and those of the hub that may wait."""


@dataclass
class _Circuit:
    """A circuit that is garbled in a thread; the hub takes and brings messages."""

    begun: str
    agreed: bytes = b""
    coming: Queue[bytes] = field(default_factory=lambda: Queue(_MOST_COMING))
    going: Queue[bytes] = field(default_factory=lambda: Queue(8))
    ended: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    error: CloisterError | None = None
    number: int = 0
    last: tuple[str, bytes] = ("", b"")
    asked: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def over(self) -> bool:
        """Whether nobody waits for more of it."""
        return (self.done.is_set() and self.going.empty()) or time.monotonic() - self.asked > _IDLE

    def run(self, garble: Callable[[QueueTransport], None]) -> None:
        """Until it is garbled, or fails."""
        try:
            garble(QueueTransport(self.going, self.coming, self.ended))
        except CloisterError as error:
            self.error = error
        except Exception:  # its words are for nobody
            self.error = EngineError("The circuit was not garbled", why="the key holder failed", instead="a new order")
        finally:
            self.done.set()

    def step(self, number: int, digest: str, messages: Sequence[bytes]) -> bytes:
        """What waits by now, after the hub's messages; the same step again gives the same."""
        with self.lock:
            if (number, digest) == (self.number - 1, self.last[0]):
                return self.last[1]
            if number != self.number:
                raise refused("it is not the next step of the circuit", "each step once, in order")
            if len(messages) > _MOST_COMING - self.coming.qsize():
                raise refused("more messages came than the circuit takes", "the messages of the protocol")
            self.asked = time.monotonic()
            for each in messages:
                self.coming.put(each)
            found = list[bytes]()
            waits = PATIENCE
            while len(found) < _PIECES:
                try:
                    found.append(self.going.get(timeout=min(waits, 0.2)) if not found else self.going.get_nowait())
                except Empty:
                    waits -= 0.2
                    if found or waits <= 0 or (self.done.is_set() and self.going.empty()):
                        break
            if not found and self.error is not None:
                raise self.error
            self.number, self.last = number + 1, (digest, bundle(found))
            return self.last[1]


class ExactKeys:
    """A key holder's part: a key for each plan, one circuit for each key. Primes end with the process, so that no circuit is
    garbled twice under one key, whatever is restored.

    `allowed` is its operator's word. `note` is told what was made and garbled.
    """

    def __init__(
        self, name: str, signing: SigningKey, hub: bytes, *, allowed: bool, note: Note, random: Random | None = None
    ) -> None:
        self._name, self._signing, self._hub, self._allowed, self._note = name, signing, hub, allowed, note
        self._random = random or default_random()
        self._keys: OrderedDict[str, tuple[Paillier, bytes]] = OrderedDict()
        self._held: dict[bytes, float] = {}
        """Of plans with a key and no circuit: until when each holds a place, while owners answer."""
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._circuits: OrderedDict[str, _Circuit] = OrderedDict()
        self.kinds: Mapping[str, Callable[[bytes], bytes]] = {
            "exact key": self.key,
            "exact circuit": self.circuit,
            "exact line": self.line,
            "exact stop": self.stop,
        }

    def key(self, body: bytes) -> bytes:
        """A key that was made for the plan whose digest the message is, signed."""
        if not self._allowed:
            raise AccessDenied(
                "The key holder denied exact components",
                why="what they give is not differentially private, and its operator did not allow them",
                instead="exact = true in csp.toml, by its operator",
            )
        about = hashlib.sha256(body).hexdigest()
        if about not in self._answers:
            self._make_room(body)
            made = Paillier.generate(random=self._random)
            text = key_text(self._hub, body, made.public, made.prove())
            self._answers[about] = pack("exact key", about, self._name, self._signing, text)
            self._keys[made.public.digest] = made, body
            for each in (self._answers, self._keys):
                if len(each) > _MOST_KEYS:
                    each.popitem(last=False)
        return self._answers[about]

    def circuit(self, body: bytes) -> bytes:
        """Begin to garble; the key is used up."""
        parts = unbundled(body)
        if len(parts) != 2:
            raise refused("it has other parts", "the message as its sender wrote it")
        text, data = parts
        plan, about = ExactPlan.from_text(text.decode(errors="replace")), hashlib.sha256(body).hexdigest()
        if plan.user != self._hub:
            raise refused("its user is not the hub", "a plan of this hub")
        if (known := self._circuits.get(plan.id)) is not None and known.begun == about:
            return b""
        keys, agreed = self._keys.get(plan.key.digest, (None, b""))
        if keys is None:
            raise refused("its key is not known, or was used before", "a new order")
        if plan.agreed != agreed:
            raise refused("its key was made for another plan", "the plan that all owners agreed to")
        plan.program.check_size(MOST_BYTES)
        provider = ServiceProvider(plan, keys, self._signing, random=self._random)
        del self._keys[plan.key.digest]
        self._held.pop(agreed, None)
        self._circuits[plan.id] = made = _Circuit(about, agreed)
        garble = lambda transport: provider.garble(data, transport, most=MOST_BYTES)  # noqa: E731
        threading.Thread(target=made.run, args=(garble,), daemon=True).start()
        self._note("exact", {"about": plan.id, "circuit": str(plan.program)})
        return b""

    def stop(self, body: bytes) -> bytes:
        """Let go of a plan's key and circuit, by the digest that its key was made for."""
        self._held.pop(body, None)
        for name in [name for name, (_, agreed) in self._keys.items() if agreed == body]:
            del self._keys[name]
        for name in [name for name, each in self._circuits.items() if each.agreed == body]:
            self._circuits.pop(name).ended.set()
        return b""

    def _make_room(self, agreed: bytes) -> None:
        """A place for the circuit of a plan, by those that are over; refused where all are taken. Nothing is refused for want of
        room after it, when owners have said yes and sent."""
        for name in [name for name, each in self._circuits.items() if each.over]:
            self._circuits.pop(name).ended.set()
        now = time.monotonic()
        self._held = {each: until for each, until in self._held.items() if until > now}
        if len(self._circuits) + len(self._held) >= _MOST_CIRCUITS:
            raise AccessDenied(
                "The key holder denied exact components",
                why=f"it garbles {_MOST_CIRCUITS} circuits already, or keeps their places",
                instead="the same order when one has ended",
            )
        self._held[agreed] = now + _IDLE

    def line(self, body: bytes) -> bytes:
        """A step of the circuit's protocol."""
        name, number, *messages = unbundled(body) or [b"", b""]
        found = self._circuits.get(name.decode(errors="replace"))
        if found is None:
            raise refused("no such circuit is garbled", "a new order")
        return found.step(int.from_bytes(number[:8], "big"), hashlib.sha256(body).hexdigest(), messages)
