"""MDAV: groups of k records that lie near one another, found from the outside in.

Maximum distance to the average vector (Domingo-Ferrer & Torra 2005, "MDAV-generic"): the record that is farthest from the
centre of those that are left takes its k − 1 nearest; the record farthest from it does the same; again with the rest. Every
group has k records, the last one up to 2k − 1. It is a heuristic (the best grouping is NP-hard to find), and the measure
for others.
"""

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_AFRESH = 256
"""Rounds after which the running sum of records is summed again, so that its rounding does not grow."""


def mdav(points: npt.ArrayLike, k: int) -> Integers:
    """The group of each record, numbered from 0: groups of k, the last one of up to 2k − 1.

    Distances are Euclid's on the numbers as they are given: standardise columns first. Time n²/k times columns.

    >>> mdav([[0.0], [9.0], [0.1], [9.2], [0.3], [9.1]], k=3).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    rows = check_points(points, k)
    left = _Left(rows)
    group = 0
    while left.count >= 3 * k:
        far = left.rows[left.farthest_from(left.centre())].copy()
        distances = left.distances(far)
        opposite = left.rows[int(distances.argmax())].copy()
        left.take(_nearest(distances, k), group)
        left.take(_nearest(left.distances(opposite), k), group + 1)
        group += 2
    if left.count >= 2 * k:
        far = left.rows[left.farthest_from(left.centre())].copy()
        left.take(_nearest(left.distances(far), k), group)
        group += 1
    left.take_all(group)
    return left.groups


def vmdav(points: npt.ArrayLike, k: int, *, gamma: float = 0.2) -> Integers:
    """Groups of k to 2k − 1 records (Solanas & Martínez-Ballesté 2006, "V-MDAV"): a group takes in one more record where
    that is nearer to the group than `gamma` times its distance to the nearest record outside.

    With clusters of unequal size in the data it loses less than MDAV (gamma near 1); with scattered data nothing (0.2). Up to
    k − 1 records that are left over join the group whose centre is nearest, which may then pass 2k − 1.

    >>> vmdav([[0.0], [0.1], [0.2], [0.3], [9.0], [9.1], [9.2]], k=3, gamma=1.1).tolist()
    [1, 1, 1, 1, 0, 0, 0]
    """
    rows = check_points(points, k)
    if not gamma >= 0 or gamma == np.inf:
        raise InvalidParameter(f"gamma={gamma} is invalid", why="it is a factor of at least 0", instead="gamma=0.2")
    left = _Left(rows)
    centre = left.centre()
    group = 0
    while left.count >= k:
        far = left.rows[left.farthest_from(centre)].copy()
        members = _nearest(left.distances(far), k)
        inside = left.rows[members].copy()
        left.take(members, group)
        while len(inside) < 2 * k - 1 and left.count > 1:
            near = np.min([left.distances(each) for each in inside], axis=0)
            next_one = int(near.argmin())
            outside = left.distances(left.rows[next_one].copy())
            outside[next_one] = np.inf
            if not np.sqrt(max(near[next_one], 0.0)) < gamma * np.sqrt(max(float(outside.min()), 0.0)):
                break
            inside = np.vstack([inside, left.rows[next_one]])
            left.take(np.array([next_one]), group)
        group += 1
    if left.count:
        sizes = np.bincount(left.groups[left.groups >= 0], minlength=group)
        taken = left.groups >= 0
        centres = np.stack([np.bincount(left.groups[taken], column[taken], group) / sizes for column in rows.T], axis=1)
        for place in left.ids[: left.count]:
            left.groups[place] = int(((centres - rows[place]) ** 2).sum(axis=1).argmin())
    return left.groups


def check_points(points: npt.ArrayLike, k: int) -> Floats:
    """Records as a finite matrix of floats, and k a whole number that they can fill."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidParameter(f"k={k!r} is invalid", why="a group has a whole number of records, at least 1", instead="k=5")
    rows = np.array(points, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InvalidParameter(
            "The records are invalid", why="they are not a matrix of finite numbers", instead="rows of numbers, none missing"
        )
    if 0 < len(rows) < k:
        raise InvalidParameter(
            f"k={k} is invalid", why=f"the table has {len(rows)} records, too few for one group", instead=f"k={len(rows)}"
        )
    return rows


class _Left:
    """The records that no group has taken: they stand at the front of the arrays, so that nothing is copied but what moves."""

    def __init__(self, rows: Floats) -> None:
        middle = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
        self.rows = np.ascontiguousarray(rows - middle)  # near 0, so that squares do not cancel
        self.squares = np.einsum("ij,ij->i", self.rows, self.rows)
        self.ids = np.arange(len(rows))
        self.count = len(rows)
        self.groups = np.full(len(rows), -1, dtype=np.int64)
        self._sum = self.rows.sum(axis=0)
        self._taken = 0

    def centre(self) -> Floats:
        if self._taken >= _AFRESH:
            self._sum = self.rows[: self.count].sum(axis=0)
            self._taken = 0
        return np.asarray(self._sum / max(self.count, 1))

    def distances(self, place: Floats) -> Floats:
        """Squared distances of all that are left, up to rounding."""
        return np.asarray(self.squares[: self.count] - 2 * (self.rows[: self.count] @ place) + place @ place)

    def farthest_from(self, place: Floats) -> int:
        return int(self.distances(place).argmax())

    def take(self, members: Integers, group: int) -> None:
        """Those records leave; the last ones that stay move into their places."""
        self.groups[self.ids[members]] = group
        self._sum -= self.rows[members].sum(axis=0)
        self._taken += 1
        end = self.count - len(members)
        gap = members[members < end]
        tail = np.arange(end, self.count)
        stays = tail[~np.isin(tail, members)] if len(gap) else tail[:0]
        for array in (self.rows, self.squares, self.ids):
            array[gap] = array[stays]
        self.count = end

    def take_all(self, group: int) -> None:
        self.groups[self.ids[: self.count]] = group
        self.count = 0


def _nearest(distances: Floats, k: int) -> Integers:
    if len(distances) <= k:
        return np.arange(len(distances))
    return np.asarray(np.argpartition(distances, k - 1)[:k])


def blocked_mdav(points: npt.ArrayLike, k: int, *, size: int = 1000) -> Integers:
    """The group of each record by MDAV inside of blocks of at most about `size` records: for millions of them.

    Blocks are the leaves of a k-d tree (Solanas, Martínez-Ballesté, Domingo-Ferrer & Mateo-Sanz 2006 cut by a 2ᵈ tree): a block
    is cut at the middle of the column along which it spreads most. Cuts fall at whole multiples of k, so that only one group of
    the whole table has more than k records. Time is n·size/k instead of n²/k.

    >>> groups = blocked_mdav(np.arange(1000.0)[::-1], k=5, size=50)
    >>> np.bincount(groups).min(), groups.max() + 1
    (np.int64(5), np.int64(200))
    """
    rows = check_points(points, k)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 3 * k:
        raise InvalidParameter(f"size={size!r} is invalid", why="a block holds three groups at least", instead=f"size={200 * k}")
    groups = np.empty(len(rows), dtype=np.int64)
    first = 0
    stack = [np.arange(len(rows))]
    while stack:
        members = stack.pop()
        if len(members) > size:
            stack += _halves(rows, members, k)
            continue
        if len(members):
            groups[members] = first + mdav(rows[members], k)
            first = int(groups[members].max()) + 1
    return groups


def _halves(rows: Floats, members: Integers, k: int) -> list[Integers]:
    block = rows[members]
    column = block[:, int(block.var(axis=0).argmax())]
    middle = max(1, round(len(members) / (2 * k))) * k
    order = np.argpartition(column, middle)
    return [members[order[middle:]], members[order[:middle]]]
