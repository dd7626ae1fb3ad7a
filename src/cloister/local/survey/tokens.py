"""One-time tokens: each invitation answers once, and nobody learns who answered what.

A token is 128 random bits. Who invites sends one to each person and keeps the hashes of all, in the order of the hashes:
from what is kept, no token can be made, and none can be put next to a person. What that rests on: whoever sends the
invitations does not note who got which token, and the tokens themselves are forgotten once they are sent. Someone who does
note it learns that a person has answered, and the randomised report; never more of the answer than the level promises.

Tokens that even the inviting party could not trace are blind signatures. They are not offered: the cryptography package has
no blind signing, and RSA written by hand is not constant in time.
"""

import hashlib

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.noise.mechanism import source


def new_token(random: Random | None = None) -> str:
    """128 random bits as 32 hexadecimal digits: two words.

    >>> len(new_token())
    32
    """
    drawn = source(random)
    return "".join(f"{int(word):016x}" for word in drawn.words(2))


def hash_of(token: str) -> str:
    """What is kept of a token. A token has 128 random bits, so its hash needs no salt: it can't be guessed.

    >>> hash_of("00" * 16)[:8]
    'c7e5954a'
    """
    return hashlib.sha256(f"cloister survey token {token}".encode()).hexdigest()


def issue_tokens(n: int, *, random: Random | None = None) -> tuple[list[str], list[str]]:
    """n tokens to send, and their hashes to keep, sorted so that their order tells nothing of who was invited when.

    >>> tokens, hashes = issue_tokens(3)
    >>> sorted(hash_of(token) for token in tokens) == hashes
    True
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 10**7:
        raise InvalidParameter("n= is invalid", why="it is not a number of invitations, 1 to 10⁷", instead="issue_tokens(100)")
    tokens = [new_token(random) for _ in range(n)]
    return tokens, sorted(map(hash_of, tokens))
