"""Use against the best attacker: each projection is fitted, attacked and judged on rows that it has not seen.

Rows are split by *person*, where `persons` says whose they are, and by row. By row, an attacker knows other rows of the same
people; by person, nobody there was ever seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from cloister.compress.attackers import distance, explained, labels_read, linked, rows_rebuilt, use_kept
from cloister.compress.drawing import random_of
from cloister.errors import InvalidParameter
from cloister.noise import Random

if TYPE_CHECKING:
    import altair as alt

_ATTACKERS = (
    "nearest neighbour, linear, naive Bayes, kernel and network on labels; inverse, ridge, kernel ridge and network on rows"
)
MARK = f"not differentially private; attackers tried: {_ATTACKERS}"

PUBLISHED = (
    "published: the error of the projection's own inverse, which papers print; it knows nothing of rows, so it says "
    "nothing of an attacker who has seen some"
)
"""Why that number misleads, beside wherever it is printed."""


class Point(NamedTuple):
    """One projection with so many dimensions, averaged over the splits."""

    method: str
    dimensions: int
    utility: float
    """The accuracy of an honest reader of the label of use, averaged over its classes."""
    secret: float
    """That of the best attacker of the secret, who knows other rows of the same people."""
    secret_by: str
    secret_of_strangers: float | None
    """With people that no attacker has seen: that of the secret; where the secret is who it is, how often two rows are linked."""
    utility_of_strangers: float | None
    rebuilt: float
    """How far the best attacker's guess of a row is from it."""
    rebuilt_by: str
    published: float | None
    """The same by the projection's own inverse alone, as papers print it: it knows nothing of rows, so it mostly flatters."""
    columns: tuple[float, ...]
    """Of each column the share of its variance that the best attacker of rows gets back."""
    rebuilt_of_strangers: float | None = None
    """How far the best guess is from rows of people that no attacker has seen."""


_NAMES = (
    *("method", "dimensions", "utility", "secret", "secret_by", "secret_of_strangers", "utility_of_strangers"),
    *("rebuilt", "rebuilt_by", "published", "columns", "rebuilt_of_strangers"),
)
"""Of the fields of a point, in their order, where it is stored: never renamed."""


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """What projections keep for use, and what attackers make of them."""

    points: tuple[Point, ...]
    utility_guess: float
    """The accuracy of guessing."""
    secret_guess: float
    strangers_guess: float | None
    """That of linking two rows of a stranger, or of a stranger's secret; None where nothing of strangers is guessed."""
    mean_row: float
    """How far rows are from their mean: nothing is learned by whoever is no nearer."""
    mark: str = MARK
    published_means: str = PUBLISHED

    def data(self) -> list[dict[str, Any]]:
        """One row a point."""
        return [dict(zip(_NAMES, each, strict=True)) for each in self.points]

    def to_json(self) -> str:
        """As JSON, with the mark."""
        about = {"mark": self.mark, "utility_guess": self.utility_guess, "secret_guess": self.secret_guess}
        about |= {"strangers_guess": self.strangers_guess, "mean_row": self.mean_row, "points": self.data()}
        about |= {"published_means": self.published_means}
        return json.dumps(about, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TradeOff:
        """What `to_json` wrote."""
        told = json.loads(text)
        points = tuple(
            Point(**{name: each[name] for name in _NAMES if name in each} | {"columns": tuple(each["columns"])})
            for each in told.pop("points")
        )
        return cls(points=points, **told)

    def text(self) -> str:
        """A table for a terminal: each number with people whom attackers know, and with strangers."""
        heads = (
            f"{'method':<14}{'dims':>5}{'use':>7}{'strangers':>11}{'secret':>8}{'strangers':>11}{'rebuilt':>9}{'strangers':>11}"
        )
        lines = [f"{heads}{'published':>11}"]
        for each in self.points:
            use, secret = _shown(each.utility_of_strangers, 3), _shown(each.secret_of_strangers, 3)
            far, own = _shown(each.rebuilt_of_strangers, 2), _shown(each.published, 2)
            known = f"{each.method:<14}{each.dimensions:>5}{each.utility:>7.3f}{use:>11}{each.secret:>8.3f}{secret:>11}"
            lines.append(f"{known}{each.rebuilt:>9.2f}{far:>11}{own:>11}")
        guess, use = _shown(self.strangers_guess, 3), f"{self.utility_guess:>7.3f}"
        lines.append(f"{'guessing':<19}{use}{'':>11}{self.secret_guess:>8.3f}{guess:>11}{self.mean_row:>9.2f}")
        return "\n".join([*lines, self.published_means, self.mark])

    def __repr__(self) -> str:
        return self.text()

    def chart(self) -> alt.LayerChart:
        """A point a projection and dimension: right is useful, down is safe; dashed: guessing."""
        import altair as alt

        from cloister.notebook import offline

        title = alt.Title("What projections keep and lose", subtitle=["against the best attacker", "not differentially private"])
        rows = [{**each, "label": str(each["dimensions"]), "columns": None} for each in self.data()]
        base = alt.Chart(alt.Data(values=rows)).properties(width=420, height=300, title=title)
        x = alt.X("utility:Q", scale=alt.Scale(zero=False), title="accuracy of the use")
        y = alt.Y("secret:Q", scale=alt.Scale(domain=[0, 1]), title="accuracy of the best attacker")
        colour = alt.Color("method:N", title=None)
        dashed = alt.Chart(alt.Data(values=[{"guess": self.secret_guess}])).mark_rule(strokeDash=[6, 4]).encode(y="guess:Q")
        tooltip = ["method:N", "dimensions:Q", "utility:Q", "secret:Q", "secret_by:N", "rebuilt:Q"]
        return offline(
            alt.layer(
                dashed,
                base.mark_line(opacity=0.4).encode(x=x, y=y, color=colour, order="dimensions:Q"),
                base.mark_point(filled=True, size=70).encode(x=x, y=y, color=colour, tooltip=tooltip),
                base.mark_text(dx=9, align="left").encode(x=x, y=y, color=colour, text="label:N"),
            )
        )


def trade_off(
    X: npt.ArrayLike,
    utility: npt.ArrayLike,
    private: npt.ArrayLike,
    projections: Mapping[str, Any],
    *,
    dimensions: Sequence[int],
    persons: npt.ArrayLike | None = None,
    splits: int = 3,
    test: float = 0.3,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> TradeOff:
    """Fit each projection with each number of dimensions, and attack it. For public rows, or the owner's own eyes.

    Parameters
    ----------
    utility, private
        The label that is to stay readable, and the one that is not.
    projections
        Transformers by name; `n_components` is set.
    persons
        Whose row each is; where it is `private` itself, the secret is who somebody is.

    >>> from cloister.compress import DCA, PCA
    >>> draw = Random.deterministic(1)
    >>> values = draw.below(1000, 240).reshape(60, 4) / 1000.0
    >>> use, secret = values[:, 0] > 0.5, values[:, 1] > 0.5
    >>> found = trade_off(values, use, secret, {"DCA": DCA()}, dimensions=[1], splits=1)
    >>> found.points[0].utility > 0.7, found.mark[:28]
    (True, 'not differentially private; ')
    """
    rows = _rows(X)
    use, secret = _labels("utility", utility, len(rows)), _labels("private", private, len(rows))
    people = None if persons is None else _labels("persons", persons, len(rows))
    by_identity = people is not None and len(set(zip(people, secret, strict=True))) == people.max() + 1 == secret.max() + 1
    random, asked = random_of(random_state), asked_of(projections, dimensions)
    cuts = list(_splits(secret if people is None else people, *_shares(splits, test), random))
    apart = [] if people is None else list(_apart(people, splits, test, random_of(random_state)))
    for known, others in [*cuts, *apart]:
        if not np.ptp(rows[known], axis=0).any():
            why = "they are all alike: no column tells one from another"
            raise InvalidParameter("The rows are invalid", why=why, instead="columns that vary")
        if min(len(known), len(others)) < 2 or min(len(np.unique(each[known])) for each in (use, secret)) < 2:
            why = "there are too few rows of each class and person to learn from some and be judged on others"
            raise InvalidParameter("The rows are invalid", why=why, instead="several rows a class, or another test=")
    points = []
    for name, made in projections.items():
        for count in asked:
            progress(f"{name}, {count} dimensions")
            one = clone(made).set_params(n_components=count)
            seen = [_judged(one, rows, use, secret, cut, random_state) for cut in cuts]
            far = [_strangers(one, rows, use, secret, cut, random_state, linking=by_identity) for cut in apart]
            points.append(_point(name, count, seen, far))
    hidden = [
        secret[others] if by_identity else secret[others][np.isin(secret[others], secret[known])] for known, others in apart
    ]
    chance = [1 / len(np.unique(each)) for each in hidden if len(each)]
    return TradeOff(
        points=tuple(points),
        utility_guess=_guessing(use, cuts),
        secret_guess=_guessing(secret, cuts),
        strangers_guess=float(np.mean(chance)) if chance else None,
        mean_row=float(np.mean([distance(rows[known].mean(axis=0), rows[others]) for known, others in cuts])),
    )


def _fitted(made: Any, rows: Any, use: Any, secret: Any, cut: tuple[Any, Any], seed: int) -> tuple[Any, Any, float, Any]:
    """The coordinates of known rows and of others, the use that these keep, and what attackers take them to be."""
    known, others = cut
    made.fit(rows[known], use[known], secret[known])
    z, seen = made.transform(rows[known]), made.transform(rows[others])
    guesses = rows_rebuilt(z, rows[known], seen, seed, getattr(made, "inverse_transform", None))
    return z, seen, use_kept(z, use[known], seen, use[others]), guesses


def _judged(made: Any, rows: Any, use: Any, secret: Any, cut: tuple[Any, Any], seed: int) -> dict[str, Any]:
    known, others = cut
    z, seen, kept, guesses = _fitted(made, rows, use, secret, cut, seed)
    rebuilt = {name: distance(guess, rows[others]) for name, guess in guesses.items()}
    return {
        "utility": kept,
        "secret": labels_read(z, secret[known], seen, secret[others], seed),
        "rebuilt": rebuilt,
        "published": rebuilt.get("inverse"),
        "columns": {name: explained(guess, rows[others]) for name, guess in guesses.items()},
    }


def _strangers(
    made: Any, rows: Any, use: Any, secret: Any, cut: tuple[Any, Any], seed: int, *, linking: bool
) -> tuple[float, float | None, float]:
    """The use, the best attacker of the secret (None where strangers have no class of it that known people have), and that of
    rows."""
    known, others = cut
    z, seen, kept, guesses = _fitted(made, rows, use, secret, cut, seed)
    rebuilt = min(distance(guess, rows[others]) for guess in guesses.values())
    if linking:
        return kept, max(linked(z, secret[known], seen, secret[others]).values(), default=None), rebuilt
    met = np.isin(secret[others], secret[known])
    if not met.any():
        return kept, None, rebuilt
    return kept, max(labels_read(z, secret[known], seen[met], secret[others][met], seed).values()), rebuilt


def _point(name: str, count: int, seen: list[dict[str, Any]], far: list[tuple[float, float | None, float]]) -> Point:
    best, strangers = {}, [each for _, each, _ in far if each is not None]
    for what, choose in (("secret", max), ("rebuilt", min)):
        each = {attacker: float(np.mean([one[what][attacker] for one in seen])) for attacker in seen[0][what]}
        by = choose(each, key=each.__getitem__)
        best[what] = (each[by], by)
    return Point(
        method=name,
        dimensions=count,
        utility=float(np.mean([one["utility"] for one in seen])),
        secret=best["secret"][0],
        secret_by=best["secret"][1],
        utility_of_strangers=float(np.mean([each[0] for each in far])) if far else None,
        secret_of_strangers=float(np.mean(strangers)) if strangers else None,
        rebuilt=best["rebuilt"][0],
        rebuilt_by=best["rebuilt"][1],
        published=None if seen[0]["published"] is None else float(np.mean([one["published"] for one in seen])),
        columns=tuple(np.mean([one["columns"][best["rebuilt"][1]] for one in seen], axis=0).round(4).tolist()),
        rebuilt_of_strangers=float(np.mean([each[2] for each in far])) if far else None,
    )


def _guessing(labels: Any, cuts: Sequence[tuple[Any, Any]]) -> float:
    """The accuracy of one answer for all, averaged over the classes of the rows that are judged: some may have no row there."""
    return float(np.mean([1 / len(np.unique(labels[others])) for _, others in cuts]))


def _splits(groups: Any, splits: int, test: float, random: Random) -> Iterator[tuple[Any, Any]]:
    """By row, so that each person or class of the secret has its share on both sides."""
    for _ in range(splits):
        others = []
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            others.append(members[random.permutation(len(members))[: round(len(members) * test)]])
        held = np.sort(np.concatenate(others))
        yield np.setdiff1d(np.arange(len(groups)), held), held


def _apart(people: Any, splits: int, test: float, random: Random) -> Iterator[tuple[Any, Any]]:
    """By person."""
    names = np.unique(people)
    for _ in range(splits):
        chosen = names[random.permutation(len(names))[: max(round(len(names) * test), 2)]]
        held = np.isin(people, chosen)
        yield np.flatnonzero(~held), np.flatnonzero(held)


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _rows(X: Any) -> Any:
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidParameter("X is invalid", why="it is a table of finite numbers with a row or more", instead="X=pixels")
    return rows


def _labels(name: str, given: Any, count: int) -> npt.NDArray[np.int64]:
    """Labels of any kind as whole numbers from 0 on."""
    found = np.asarray(given)
    if found.shape != (count,):
        raise InvalidParameter(f"{name}= is invalid", why=f"it has one label for each of {count} rows", instead=f"{name}=labels")
    plain = found.tolist()
    if any(each is None or each != each for each in plain):
        raise InvalidParameter(f"{name}= is invalid", why="some labels are missing", instead="a class of their own for them")
    places = {each: place for place, each in enumerate(dict.fromkeys(plain))}
    if len(places) < 2:
        raise InvalidParameter(f"{name}= is invalid", why="all rows are of one class", instead="two classes or more")
    return np.array([places[each] for each in plain], dtype=np.int64)


def asked_of(projections: Any, dimensions: Any) -> list[int]:
    """The numbers of dimensions, of projections that have some.

    >>> from cloister.compress import PCA
    >>> asked_of({"PCA": PCA()}, [1, 2])
    [1, 2]
    """
    if not isinstance(projections, Mapping) or not projections:
        raise InvalidParameter("projections= is invalid", why="it is projections by name", instead='{"PCA": PCA()}')
    for name, made in projections.items():
        if "n_components" not in getattr(made, "get_params", dict)():
            why = f"{name!r} has no number of dimensions"
            raise InvalidParameter("projections= is invalid", why=why, instead="PCA(), DCA(), Rounded(RUCA()), …")
    found = list(dimensions) if isinstance(dimensions, Iterable) else []
    if not found:
        raise InvalidParameter("dimensions= is invalid", why="it is a list of whole numbers", instead="dimensions=[1, 2, 5]")
    return found


def _shares(splits: Any, test: Any) -> tuple[int, float]:
    whole = isinstance(splits, int) and not isinstance(splits, bool) and splits >= 1
    if not whole or not isinstance(test, float | int) or not 0 < test < 1:
        raise InvalidParameter(
            f"splits={splits!r}, test={test!r} is invalid",
            why="splits is 1 or more, and test a share of the rows",
            instead="splits=3, test=0.3",
        )
    return splits, float(test)
