"""BROKEN ON PURPOSE: mechanisms that don't keep what they promise. Nothing in here protects anyone.

Each twin is a mistake that was published, shipped or nearly made. They live here so that the audit can be tested on them, and
so that the documentation and `cloister audit --broken` can show them; no other part of cloister imports this package, and a test
sees to it.
"""

from cloister.attacks.broken import local, looked_up, models, samplers, sensitivity, shares, sparse_vector, spending
from cloister.attacks.broken.twin import ChannelTwin, Twin, found_epsilon
from cloister.errors import InvalidParameter

TWINS: tuple[Twin | ChannelTwin, ...] = tuple(
    each
    for module in (sensitivity, looked_up, spending, samplers, shares, local, sparse_vector, models)
    for each in vars(module).values()
    if isinstance(each, Twin | ChannelTwin)
)
"""Every broken twin, in the order in which they stand in these files."""


def twin(name: str) -> Twin | ChannelTwin:
    """The broken twin of this name.

    >>> twin("noise used twice").claims
    PureDP(epsilon='1')
    """
    for each in TWINS:
        if each.name == name:
            return each
    raise InvalidParameter(f"twin {name!r} is invalid", why="there is none of this name", instead='twin("noise used twice")')


__all__ = ["TWINS", "ChannelTwin", "Twin", "found_epsilon", "twin"]
