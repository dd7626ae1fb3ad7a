"""How well membership is told from a classifier's output, before it was made coarser and after.

The attacker has the row with its label, and the output for it. Four simple scores, each larger where membership is more likely:

- *label*: 1 where the predicted label is right (Yeom, Giacomelli, Fredrikson & Jha 2018: the "gap" attack);
- *confidence*: the score of the row's own label;
- *highest*: the largest score (Salem, Zhang, Humbert, Berrang, Fritz & Backes 2019);
- *entropy*: the modified entropy of Song & Mittal (USENIX Security 2021), with its sign turned.

Of each: the area under the curve (the chance that a member scores above another; halves for ties), and the advantage, members
found less others accused, at the threshold that is best on one half of the rows, counted on the other half. Reported is the
attack with the largest area on the first half, so that neither choice flatters the advantage; the area is that of all rows.
Stronger attacks with shadow models are in `cloister.attacks`: `Coarsened` models go into them as any classifier does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.mining.coarsened import Coarsened

if TYPE_CHECKING:
    import altair as alt

Floats = npt.NDArray[np.float64]
_FEWEST = 8


@dataclass(frozen=True, kw_only=True)
class Leak:
    """What one output gives away, by the best of the simple attacks.

    >>> leak = Leak(output="labels", attack="right", area=0.52, advantage=0.03, margin=0.05, accuracy=0.9)
    >>> leak.area
    0.52
    """

    output: str
    attack: str
    area: float
    """0.5 is guessing, 1 is knowing."""
    advantage: float
    """Members found less others accused, on rows that did not choose the threshold."""
    margin: float
    """The half-width of the advantage's interval at 95 % (Hoeffding, for both shares)."""
    accuracy: float
    """Of the labels, on the rows that the model did not learn: what is paid for a coarser output, if anything."""

    def __str__(self) -> str:
        return f"{self.output}: area {self.area:.3f}, advantage {self.advantage:.1%} ± {self.margin:.1%} ({self.attack})"


@dataclass(frozen=True, kw_only=True)
class Leaks:
    """Before, and after each way of saying less. An upper bound on nothing: a better attacker may find more.

    >>> leak = Leak(output="labels", attack="right", area=0.52, advantage=0.03, margin=0.05, accuracy=0.9)
    >>> Leaks(results=(leak,))[0].output
    'labels'
    """

    results: tuple[Leak, ...]

    def __iter__(self) -> Iterator[Leak]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> Leak:
        return self.results[place]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.results), "no guarantee: a better attack may find more"])

    def chart(self) -> alt.LayerChart:
        """A bar for each output: the area under the attack's curve, from guessing on."""
        import altair as alt

        from cloister.notebook import offline

        rows = [{"output": each.output, "area": each.area, "text": f"{each.area:.3f}", "start": 0.5} for each in self]
        base = alt.Chart(alt.Data(values=rows)).properties(width=420)
        y = alt.Y("output:N", sort=[row["output"] for row in rows], title=None)
        top = max(each.area for each in self)
        x = alt.X(
            "area:Q", title="area under the attack's curve (0.5: guessing)", scale=alt.Scale(domain=[0.5, max(0.6, top + 0.03)])
        )
        bars = base.mark_bar(color="#1f6f5c", clip=True).encode(x=x, x2="start:Q", y=y)
        return offline(alt.layer(bars, base.mark_text(align="left", dx=4).encode(x=x, y=y, text="text:N")))


def attack_before_and_after(
    model: Any, members: tuple[Any, Any], others: tuple[Any, Any], outputs: Sequence[Coarsened] | None = None
) -> Leaks:
    """Attack a fitted classifier's full scores, then each coarser output.

    `members` are rows (X, y) that it was trained on, `others` rows of the same kind that it was not. By itself the outputs are
    two decimals, one decimal, the highest score, labels only.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X[::2], y[::2])
    >>> leaks = attack_before_and_after(model, (X[::2], y[::2]), (X[1::2], y[1::2]))
    >>> leaks[0].area > leaks[-1].area > 0.5
    True
    """
    chosen = outputs if outputs is not None else [Coarsened(model, **each) for each in _BY_ITSELF]
    inside, outside = _rows(members, "members"), _rows(others, "others")
    every: list[Coarsened] = [Coarsened(model), *chosen]
    return Leaks(results=tuple(_leak(each, inside, outside) for each in every))


_BY_ITSELF: tuple[dict[str, Any], ...] = ({"decimals": 2}, {"decimals": 1}, {"top": 1}, {"output": "labels"})


def area_under_curve(members: Floats, others: Floats) -> float:
    """The chance that a member scores above another, halves for ties.

    >>> area_under_curve(np.array([2.0, 1.0]), np.array([1.0, 0.0]))
    0.875
    """
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, side="left")
    upto = np.searchsorted(ordered, members, side="right")
    return float((below + upto).sum() / (2 * len(members) * len(others)))


def _rows(rows: tuple[Any, Any], name: str) -> tuple[Any, npt.NDArray[Any]]:
    if not isinstance(rows, tuple | list) or len(rows) != 2 or len(rows[0]) != len(rows[1]):
        raise InvalidParameter(
            f"{name} is invalid", why="they are rows and their labels, as many of both", instead=f"{name}=(X, y)"
        )
    if len(rows[1]) < _FEWEST:
        raise InvalidParameter(f"{name} is invalid", why=f"an attack is measured on {_FEWEST} rows or more", instead="more rows")
    return rows[0], np.asarray(rows[1])


def _leak(model: Coarsened, inside: tuple[Any, Any], outside: tuple[Any, Any]) -> Leak:
    one, other = _scores(model, *inside), _scores(model, *outside)
    name = max(one, key=lambda each: area_under_curve(one[each][::2], other[each][::2]))
    members, others = one[name], other[name]
    threshold = _best_threshold(members[::2], others[::2])
    advantage = float((members[1::2] >= threshold).mean() - (others[1::2] >= threshold).mean())
    margin = sum(sqrt(log(4 / 0.05) / (2 * len(each[1::2]))) for each in (members, others))
    return Leak(
        output=model.title,
        attack=name,
        area=area_under_curve(members, others),
        advantage=advantage,
        margin=margin,
        accuracy=float((model.predict(outside[0]) == outside[1]).mean()),
    )


def _scores(model: Coarsened, X: Any, y: npt.NDArray[Any]) -> dict[str, Floats]:
    shown = model.predict_proba(X)
    classes = model.classes_
    places = np.searchsorted(classes, y) if np.isin(y, classes).all() else None
    if places is None:
        raise InvalidParameter(
            "The labels are invalid", why="the model knows other classes", instead="rows with the model's classes"
        )
    own = shown[np.arange(len(y)), places]
    rest = shown.copy()
    rest[np.arange(len(y)), places] = 0
    clipped = np.clip(np.c_[own, rest], 1e-12, 1 - 1e-12)
    entropy = (1 - own) * np.log(clipped[:, 0]) + (rest * np.log1p(-clipped[:, 1:])).sum(axis=1)
    right = (np.asarray(model.predict(X)) == y).astype(np.float64)
    return {"label": right, "confidence": own, "highest": shown.max(axis=1), "entropy": entropy}


def _best_threshold(members: Floats, others: Floats) -> float:
    """The one with the largest advantage; above all scores where nothing is better than accusing nobody."""
    levels = np.unique(np.concatenate([members, others]))
    found = 1 - np.searchsorted(np.sort(members), levels, side="left") / len(members)
    accused = 1 - np.searchsorted(np.sort(others), levels, side="left") / len(others)
    best = int(np.argmax(found - accused))
    return float(levels[best]) if found[best] > accused[best] else float("inf")
