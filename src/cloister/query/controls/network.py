"""A frequency table with its totals as a network: what the totals say, and how far they leave a cell open.

Each row and each column of a two-way table is a node; each cell is an edge from its row to its column, and the totals lead back.
That every row and column adds up then says that as much flows into a node as out of it, so the tables with the same published
cells are the circulations with the same flows on the published edges. Which cells can move, and how far, is a question of paths
(Gusfield 1988), and has exact integer answers; no linear programming is needed. The same holds for a one-way table with its
total, and not for three-way tables, which are no network.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Place = tuple[int, ...]
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Edge:
    """One cell or total: from node `tail` to node `head`, its value, and its place in the table with totals."""

    tail: int
    head: int
    value: int
    place: Place
    total: bool


@dataclass(frozen=True, slots=True)
class Circulation:
    """All cells and totals of a table.

    >>> table = circulation_of(np.array([[3, 1], [4, 9]]))
    >>> len(table.edges), table.interval(0, frozenset({0})), table.interval(0, frozenset({0, 1, 3, 4}))
    (9, (3, 3), (0, 4))
    """

    nodes: int
    edges: tuple[Edge, ...]
    shape: tuple[int, ...]

    def interval(self, edge: int, hidden: frozenset[int]) -> tuple[int, int | None]:
        """The least and the greatest whole number that a hidden cell may be, for who sees all others; None: no upper bound."""
        this = self.edges[edge]
        up, _ = self._pushed(this.head, this.tail, hidden - {edge})
        down, _ = self._pushed(this.tail, this.head, hidden - {edge})
        return max(this.value - down, 0), None if up >= _UNLIMITED else this.value + up

    def cheapest(
        self, edge: int, hidden: frozenset[int], costs: Mapping[int, int], *, upwards: bool
    ) -> tuple[int, frozenset[int]] | None:
        """The cheapest cells to hide besides, so that a cell may move further one way: their cost and their edges."""
        this = self.edges[edge]
        start, goal = (this.head, this.tail) if upwards else (this.tail, this.head)
        _, flow = self._pushed(start, goal, hidden - {edge})
        best: dict[int, int] = {start: 0}
        came: dict[int, tuple[int, int]] = {}
        heap = [(0, start)]
        while heap:
            cost, node = heappop(heap)
            if node == goal:
                break
            if cost > best[node]:
                continue
            for number, other in self._open(node, range(len(self.edges)), flow):
                reached = cost + (0 if number in hidden else costs[number])
                if number != edge and reached < best.get(other, _UNLIMITED):
                    best[other], came[other] = reached, (number, node)
                    heappush(heap, (reached, other))
        if goal not in came:
            return None
        path, node = set(), goal
        while node != start:
            number, node = came[node]
            path.add(number)
        return best[goal], frozenset(path - hidden)

    def _pushed(self, start: int, goal: int, hidden: frozenset[int]) -> tuple[int, dict[int, int]]:
        """The greatest flow that the hidden edges can carry more from one node to another, and by how much each changes."""
        flow: dict[int, int] = {}
        pushed = 0
        while True:
            came: dict[int, tuple[int, int]] = {}
            queue = deque([start])
            while queue and goal not in came:
                node = queue.popleft()
                for number, other in self._open(node, hidden, flow):
                    if other not in came and other != start:
                        came[other] = (number, node)
                        queue.append(other)
            if goal not in came:
                return pushed, flow
            path, node = [], goal
            while node != start:
                number, node = came[node]
                path.append((number, 1 if self.edges[number].tail == node else -1))
            room = min(_UNLIMITED if sign > 0 else self.edges[number].value + flow.get(number, 0) for number, sign in path)
            if room >= _UNLIMITED:
                return _UNLIMITED, flow
            for number, sign in path:
                flow[number] = flow.get(number, 0) + sign * room
            pushed += room

    def _open(self, node: int, numbers: frozenset[int] | range, flow: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """The edges by which more may flow out of a node: forwards always, backwards while the cell is above zero."""
        for number in sorted(numbers):
            edge = self.edges[number]
            if edge.tail == node:
                yield number, edge.head
            elif edge.head == node and edge.value + flow.get(number, 0) > 0:
                yield number, edge.tail


def circulation_of(counts: Counts) -> Circulation:
    """The network of a one-way or two-way table, totals included; edges in the order of the table with its totals."""
    if counts.ndim == 1:
        cells = [Edge(0, 1, int(value), (place,), total=False) for place, value in enumerate(counts)]
        total = Edge(1, 0, int(counts.sum()), (len(counts),), total=True)
        return Circulation(2, (*cells, total), counts.shape)
    rows, columns = counts.shape
    full = with_totals(counts)
    first, all_rows, all_columns = rows + 1, rows, rows + 1 + columns  # column nodes come after the row nodes
    edges = []
    for i in range(rows + 1):
        for j in range(columns + 1):
            if i < rows and j < columns:
                tail, head = i, first + j
            elif i < rows:
                tail, head = all_columns, i
            elif j < columns:
                tail, head = first + j, all_rows
            else:
                tail, head = all_rows, all_columns
            edges.append(Edge(tail, head, int(full[i, j]), (i, j), total=i == rows or j == columns))
    return Circulation(rows + columns + 2, tuple(edges), counts.shape)


def with_totals(counts: Counts) -> Counts:
    """The table with a total behind each line of cells, in every direction.

    >>> with_totals(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    """
    full = counts
    for axis in range(counts.ndim):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    return full
