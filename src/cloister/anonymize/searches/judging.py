"""What a search knows of a node: how many rows would be suppressed there, whether that is allowed, what it scores."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.metrics.base import Counted, Floats, LatticeMetric
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Proof, Recoded, RecodedColumn
from cloister.anonymize.searches.counting import Counter, Levels, Node
from cloister.anonymize.searches.sizing import Sized, Sizer


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One node."""

    levels: Levels
    suppressed: int
    """Rows in classes that do not meet the models; where it is not allowed there may be more."""
    allowed: bool
    """Whether so many rows may be suppressed."""
    hopeless_below: bool
    """Whether no node under it is allowed either."""
    floor: float
    """No node above scores less (nor this one)."""
    score: float
    """What it scores; infinite where it was not allowed."""

    @property
    def key(self) -> tuple[float, int, Levels]:
        """What the better of two is chosen by: its score, then fewer levels, then the earlier columns lower."""
        return (self.score, sum(self.levels), self.levels)


class Judge:
    """Judges nodes of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows = problem.table.total
        self.metric: LatticeMetric = problem.metric.on_lattice(problem) or _Rescored(problem)
        # with nothing suppressed every model is monotone; with rows suppressed only those are that a class never loses again
        self.monotone = problem.absorbing or problem.limit == 0
        self._absorbing: tuple[PrivacyModel, ...] = tuple(model for model in problem.models if model.absorbing)
        self._met: set[Levels] = set()
        self._below: Counter | None = None
        self._count_from(None)

    def _count_from(self, low: Levels | None) -> None:
        self.counter = Counter(self.problem, low)
        self._sizer: Sizer | None = None
        if self.counter.largest_k is not None:
            plain = Counter(self.problem, low, spread=False) if self.counter.extras else self.counter
            self._sizer = Sizer(plain)

    @property
    def heights(self) -> Levels:
        """How many levels each column has."""
        return self.counter.heights

    @property
    def judged(self) -> int:
        """How many nodes were counted."""
        return len(self._met)

    def floors(self, axes: list[npt.NDArray[np.intp]]) -> Floats:
        """What nodes cost at least, by their levels alone."""
        return self.metric.floors(axes)

    def lowest(self) -> Levels:
        """Each column on the lowest level that it may have when all others are on top; no node lower in any column is allowed.

        From then on counting begins there: fewer rows are distinct, and their labels need fewer bits.
        """
        top = tuple(height - 1 for height in self.heights)
        if not self.monotone:
            return (0,) * len(top)
        low = []
        for place, highest in enumerate(top):
            level = 0
            while level < highest and self._hopeless_alone(place, level, top):
                level += 1
            low.append(level)
        if any(low) and self._below is None:
            self._below = self.counter
            self._count_from(tuple(low))
        return tuple(low)

    def _hopeless_alone(self, place: int, level: int, top: Levels) -> bool:
        """Whether no node with a column on this level, or a lower one, is allowed."""
        k = self.counter.largest_k
        if k is not None:
            # rows whose label alone is that of fewer than k rows stand in classes of fewer
            name = self.problem.quasi[place]
            sizes = np.bincount(self.problem.ladders[name].codes[level], weights=self.problem.table.columns[name].counts)
            if float(sizes[sizes < k].sum()) > self.problem.limit:
                return True
            others = [labels[-1] for other, labels in enumerate(self.counter.labels) if other != place]
            if self.counter.only_k and max(others, default=1) <= 1:
                return False
        return self.judge((*top[:place], level, *top[place + 1 :])).hopeless_below

    def node(self, levels: Levels) -> Node:
        """The classes of a node."""
        return self.counter.node(levels) if self._below is None or self._inside(levels) else self._below.node(levels)

    def counted(self, levels: Levels) -> tuple[Node | Sized, npt.NDArray[np.bool_]]:
        """The classes of a node as a metric wants them, and which of them meet the models."""
        if self._sizer is not None and self.counter.only_k and self._inside(levels):
            sized = self._sizer.at(levels, exact=True)
            if sized.exact:
                return sized, sized.sizes >= (self.counter.largest_k or 1)
        node = self.node(levels)
        return node, self.counter.satisfied(node)

    def _inside(self, levels: Levels) -> bool:
        return self._below is None or all(level >= least for level, least in zip(levels, self.counter.low, strict=True))

    def judge(self, levels: Levels, best: float = np.inf) -> Judgement:
        """Count a node; it is scored only where it is allowed and its floor is below the best."""
        self._met.add(levels)
        sized = self._sized(levels)
        if sized is not None and (lost := sized.lost(self.counter.largest_k or 1)) > self.problem.limit:
            # k-anonymity alone suppresses too many, here and on every node below
            floor = self.metric.floor(sized) if self.metric.by_classes and sized.exact else -np.inf
            return Judgement(levels=levels, suppressed=lost, allowed=False, hopeless_below=True, floor=floor, score=np.inf)
        if sized is not None and sized.exact and self.counter.only_k:
            return self._judged(sized, sized.sizes >= (self.counter.largest_k or 1), best)
        node = self.node(levels)
        return self._judged(node, self.counter.satisfied(node), best)

    def _sized(self, levels: Levels) -> Sized | None:
        """What sizes alone tell: exactly, where that is needed for a floor, or to be sure that k-anonymity is not in the way."""
        if self._sizer is None or not self._inside(levels):
            return None
        found = self._sizer.at(levels, exact=self.metric.by_classes)
        if not found.exact and found.lost(self.counter.largest_k or 1) <= self.problem.limit:
            found = self._sizer.at(levels, exact=True)
        return found

    def _judged(self, node: Node | Sized, kept: npt.NDArray[np.bool_], best: float) -> Judgement:
        levels = node.levels
        suppressed = self.rows - int(node.sizes[kept].sum())
        allowed = suppressed <= self.problem.limit
        hopeless = not allowed and (self.monotone or self._lost_for_good(node) > self.problem.limit)
        floor = self.metric.floor(node) if self.metric.by_classes else -np.inf
        if allowed and self.metric.by_levels and np.isfinite(best):
            floor = max(floor, float(self.metric.floors([np.array(level) for level in levels])))
        score = self.metric.score(node, kept) if allowed and floor < best else np.inf
        return Judgement(levels=levels, suppressed=suppressed, allowed=allowed, hopeless_below=hopeless, floor=floor, score=score)

    def _lost_for_good(self, node: Node | Sized) -> int:
        """Rows that the absorbing models alone suppress: at least as many are lost on every node below."""
        if not self._absorbing or isinstance(node, Sized):
            return 0
        kept = self.counter.satisfied(node, self._absorbing)
        return self.rows - int(node.sizes[kept].sum())


class _Rescored(LatticeMetric):
    """A metric that knows nothing of lattices: nodes are recoded, and scored as any recoding."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """As any recoding."""
        return self._problem.metric.score(self._problem, recode(self._problem, node.levels))


def recode(problem: Problem, levels: Levels, proof: Proof | None = None) -> Recoded:
    """The table on these levels; rows of classes that do not meet the models are suppressed."""
    columns = {
        name: RecodedColumn.at(problem.table.columns[name], problem.ladders[name], level)
        for name, level in zip(problem.quasi, levels, strict=True)
    }
    whole = Recoded(
        columns=columns,
        suppressed=np.zeros(problem.table.rows, dtype=bool),
        sensitive=problem.sensitive_columns,
        research=problem.research,
        weights=problem.table.weights,
    )
    kept = problem.satisfied(whole.classes)
    return Recoded(
        columns=columns,
        suppressed=~kept[whole.classes.of_row] if len(kept) else whole.suppressed,
        sensitive=problem.sensitive_columns,
        levels=dict(zip(problem.quasi, levels, strict=True)),
        proof=proof,
        research=problem.research,
        weights=problem.table.weights,
    )
