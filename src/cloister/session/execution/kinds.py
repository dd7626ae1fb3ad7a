"""Two ways to measure a question: for its values, or for their margins (`Shape.for_margins`). Readings of one kind are combined.

Whoever bought for a margin goes on so, and whoever has readings of an older version, which bought nothing else. Two people who
ask at the same moment, one of them for a margin, may buy both kinds: what was first is gone on with.
"""

from collections.abc import Sequence

from cloister.session.execution.history import History
from cloister.session.planning.shape import Shape
from cloister.session.planning.zoom import Zoom
from cloister.session.releases.store import Found, Stored


def as_bought(shapes: Sequence[Shape], history: History, *, margins: bool = False) -> list[Shape]:
    """The shapes as they were bought first; as `margins` says where nothing was."""
    kind = _kind(shapes, history.stored[0]) if history.stored else [margins] * len(shapes)
    return [shape.for_margins or shape if other else shape for shape, other in zip(shapes, kind, strict=True)]


def of_one_kind(shapes: Sequence[Shape], history: History) -> History:
    """The purchases that can be combined with the first."""
    kinds = [_kind(shapes, stored) for stored in history.stored]
    return history.only([kind == kinds[0] for kind in kinds])


def _kind(shapes: Sequence[Shape], stored: Stored) -> list[bool]:
    """Of each shape whether it was bought as it is for margins."""
    pairs = zip(shapes, stored.parts, strict=True)
    return [shape.for_margins is not None and not _as_planned(shape, part) for shape, part in pairs]


def _as_planned(shape: Shape, part: Found) -> bool:
    """Whether every quantile was chosen with the part of the spend that the shape gives its choice."""
    chosen = {block.raws[0].name: block.ladder for block in shape.blocks if block.share is not None}
    noises = {name: [term.noise for term in part.readings[name].terms] if name in part.readings else [None] for name in chosen}
    return all(isinstance(each, Zoom) and each.ladder == ladder for name, ladder in chosen.items() for each in noises[name])
