"""A Merkle tree over the records of a collection: one root of 32 bytes that no two sets of records share.

A leaf is a record's handle and its HMAC. The first three hexadecimal digits of the handle choose one of 4,096 buckets; a bucket's
hash is SHA-256 of its leaves in the order of their handles, a node's that of its 16 children. So the root follows from the set of
records alone, not from the order in which they came, and a client that lost its state can compute it from the store.

Claim: a set of records that differs in one byte, one record or one version has another root. Sketch: leaves are of fixed length,
so what is hashed in a bucket is read in one way; a different set with the same root is a collision of SHA-256 in a bucket or in a
node above it, or of HMAC-SHA-256 in a leaf. Buckets and nodes begin with different bytes, so none passes for another.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

DEPTH = 3
_DIGITS = "0123456789abcdef"
EMPTY = bytes(32)
"""The hash of what has no record under it."""

Leaves = Mapping[bytes, bytes]


def bucket_of(handle: bytes) -> str:
    """The bucket of a handle."""
    return handle[:2].hex()[:DEPTH]


def bucket_hash(leaves: Leaves) -> bytes:
    """The hash of a bucket with these leaves."""
    if not leaves:
        return EMPTY
    return hashlib.sha256(b"\0" + b"".join(handle + leaves[handle] for handle in sorted(leaves))).digest()


def updated(buckets: Mapping[str, Leaves], known: Callable[[Sequence[str]], Mapping[str, bytes]]) -> dict[str, bytes]:
    """The hashes that change when these buckets have these leaves; `known` says what the children of nodes are. The root is
    that of "".

    >>> updated({"0a1": {b"handle": b"mac"}}, lambda parents: {})[""] == updated({"0a1": {}}, lambda parents: {})[""]
    False
    """
    changed = {prefix: bucket_hash(leaves) for prefix, leaves in buckets.items()}
    before = known(sorted({prefix[:length] for prefix in buckets for length in range(DEPTH)}))
    level: Iterable[str] = buckets
    for _ in range(DEPTH):
        level = {prefix[:-1] for prefix in level}
        for prefix in level:
            children = [prefix + digit for digit in _DIGITS]
            hashes = b"".join([changed[child] if child in changed else before.get(child, EMPTY) for child in children])
            changed[prefix] = EMPTY if hashes == EMPTY * 16 else hashlib.sha256(b"\1" + hashes).digest()
    return changed


def root_of(leaves: Leaves) -> bytes:
    """The root over all leaves.

    >>> root_of({}) == EMPTY
    True
    """
    buckets: dict[str, dict[bytes, bytes]] = {}
    for handle, mac in leaves.items():
        buckets.setdefault(bucket_of(handle), {})[handle] = mac
    return updated(buckets, lambda parents: {})[""] if buckets else EMPTY
