"""Random sample queries: an answer is computed from a secret sample of the records that it is about (Denning 1980).

Which records are in follows from a keyed hash of the query set: the same set, in whatever words, has the same sample. Not
differential privacy. What it stops: exact differences, since a set and the same set with one more person have unrelated samples.
What it does not: averaging over questions whose *sets* differ, such as the two halves of many partitions.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cloister.crypto import PseudoRandomFunction
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact_positive, text_of
from cloister.query.controls.masks import Mask, digest_of_set


@dataclass(frozen=True, init=False)
class RandomSample:
    """Answer from about this share of the records, and scale counts and sums up. Not differential privacy.

    >>> str(RandomSample(share="0.9"))
    'answers come from a keyed sample of 0.9 of each set'
    """

    share: Fraction

    def __init__(self, *, share: Exact) -> None:
        wanted = exact_positive(share, "share")
        if wanted >= 1:
            raise InvalidParameter(
                f"share={share!r} is invalid", why="a sample is less than all records", instead='RandomSample(share="0.9")'
            )
        object.__setattr__(self, "share", wanted)

    def of(self, mask: Mask, keyed: PseudoRandomFunction) -> Mask:
        """The records of the set that are in its sample; each with probability `share`, to within 2^-64.

        >>> chosen = RandomSample(share="0.5").of(np.ones(1000, dtype=bool), PseudoRandomFunction(b"secret"))
        >>> 400 < int(chosen.sum()) < 600
        True
        """
        words = keyed.words("sample", digest_of_set(mask), count=len(mask))
        return np.asarray(mask & (words < np.uint64(int(self.share * 2**64))))

    def __str__(self) -> str:
        return f"answers come from a keyed sample of {text_of(self.share)} of each set"
