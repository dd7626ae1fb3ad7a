"""Messages between the hub and the sites: bytes that any transport carries, each signed by who wrote it.

    cloister together 1\\n | length of the header, 4 bytes | header, canonical JSON | body | signature, 64 bytes

The header says which round the message is of, its kind, and who wrote it. The signature (Ed25519) covers everything before
it, so a message of another round, of another kind or of another party is refused: a replay is one of these.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cloister.crypto import SigningKey, canonical_json, is_signed
from cloister.crypto.identities import SIGNATURE_BYTES
from cloister.errors import CloisterError
from cloister.privacy import Guarantee
from cloister.privacy.plain import guarantee_from_plain

MAGIC = b"cloister together 1\n"
_LONGEST_HEADER = 1 << 20


class RoundRefused(CloisterError):
    """A message or a step of a round that the protocol does not allow; the round may go on without it."""

    stored = "RoundRefused"


@dataclass(frozen=True, slots=True)
class Message:
    """What was written, after its signature was checked."""

    kind: str
    round: str
    sender: str
    fields: Mapping[str, Any]
    body: bytes

    @property
    def besides(self) -> list[Guarantee]:
        """What others cost that would be under the same charge, where a message says it."""
        found = (guarantee_from_plain(each) for each in self.fields.get("besides", ()))
        return [each for each in found if each is not None]


def pack(kind: str, round_id: str, sender: str, key: SigningKey, body: bytes = b"", **fields: Any) -> bytes:
    """A message as bytes.

    >>> from cloister.crypto import SigningKey
    >>> key = SigningKey(bytes(32))
    >>> unpack(pack("keys", "r1", "north", key, b"body", mask="00"), "keys", "r1", {"north": key.public}).fields
    {'mask': '00'}
    """
    header = canonical_json({"kind": kind, "round": round_id, "from": sender, "fields": fields}).encode()
    text = b"".join((MAGIC, len(header).to_bytes(4, "big"), header, body))
    return text + key.sign(text)


def is_whole(data: bytes) -> bool:
    """Whether bytes have the form of a message, whatever its header says."""
    length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "big")
    whole = len(MAGIC) + 4 + length + SIGNATURE_BYTES <= len(data)
    return data.startswith(MAGIC) and length <= _LONGEST_HEADER and whole


def opened(data: bytes) -> Message:
    """What a message says, whoever wrote it: its signature is still to be checked. `RoundRefused` where it has no form."""
    if not is_whole(data):
        raise refused("it is not a whole message of this version of the protocol")
    start = len(MAGIC) + 4
    length = int.from_bytes(data[len(MAGIC) : start], "big")
    try:
        header = json.loads(data[start : start + length])
        if canonical_json(header).encode() != data[start : start + length]:
            raise ValueError  # one text for one header: no key twice, no number that is none
        kind, round_id, sender = (str(header[part]) for part in ("kind", "round", "from"))
        return Message(kind, round_id, sender, dict(header["fields"]), data[start + length : -SIGNATURE_BYTES])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise refused("its header can't be read") from None


def unpack(data: bytes, kind: str | None, round_id: str | None, keys: Mapping[str, bytes]) -> Message:
    """What a message says, if it is of this kind and round (None: of any), and signed by one of these parties; else
    `RoundRefused`."""
    found = opened(data)
    if round_id is not None and found.round != round_id:
        raise refused("it is of another round")
    if kind is not None and found.kind != kind:
        raise refused(f"it is of the kind {found.kind!r}, and {kind!r} is awaited")
    if found.sender not in keys:
        raise refused("its sender takes no part in this step")
    if not is_signed(keys[found.sender], data[:-SIGNATURE_BYTES], data[-SIGNATURE_BYTES:]):
        raise refused(f"it is not signed by {found.sender!r}")
    return found


def bundle(parts: Iterable[bytes]) -> bytes:
    """Several texts as one.

    >>> unbundled(bundle([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def unbundled(data: bytes) -> list[bytes]:
    """The texts again; `RoundRefused` where they are not whole."""
    parts, start = [], 0
    while start < len(data):
        end = start + 4 + int.from_bytes(data[start : start + 4], "big")
        if start + 4 > len(data) or end > len(data):
            raise refused("it is cut off")
        parts.append(data[start + 4 : end])
        start = end
    return parts


def refused(why: str, instead: str = "the message as its sender wrote it, in its own round") -> RoundRefused:
    """The refusal of what a party sent."""
    return RoundRefused("A message was refused", why=why, instead=instead)


def received(client: Any, address: Any, *, most: int, seconds: float, **sent: Any) -> tuple[int, bytes]:
    """The status of what a hub answers and its bytes, of which it may send so many, and for so long: one that drips would hold a
    party for days, without a word."""
    import httpx

    found, ends = bytearray(), time.monotonic() + seconds
    with client.stream("POST", address, **sent) as response:
        for part in response.iter_raw():  # as it came: what is packed may be a thousand times as large
            found += part
            if len(found) > most or time.monotonic() > ends:
                raise httpx.ReadError("it sent more than a message can be, or too slowly")
        return response.status_code, bytes(found)
