"""A synthetic model held against the rows that it was made of, by their owner. NOT PRIVATE: exact numbers, for the owner alone.

- *Tables*: the total variation between real and synthetic tables of one, two and three columns, and the k-marginal score as
  SDNist defines it: 1000·(1 − mean total variation); over all tables where SDNist draws some at random. Beside it the same of
  the real rows drawn again: what rows of that number are off by without any noise.
- *Propensity* (Woo, Reiter, Oganian & Karr 2009; Snoke, Raab, Nowok, Dibben & Slavkovic 2018): a classifier that tells real from
  synthetic rows, judged on rows that it was not trained on. Its AUC is ½, and the mean square of its propensities away from ½ is
  0, where it cannot.
- *Learners*: trained on synthetic rows and on as many real ones, both tested on real rows.
- *Attacks* (`cloister.attacks`), where rows are given that the model never saw: each tells what it finds of members beside what
  the same attack finds of those others. Where no others are given, no attack is run: without them a success is no leak.

Nothing of it gets into a model. Rows with a value missing where the column declares none are left out, as in what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.anonymize.paper import bars, document, facts, section, table
from cloister.attacks import (
    AttributeInference,
    ClosestRecords,
    MembershipResult,
    SinglingOut,
    closest_records,
    density_ratio,
    kernel_density,
    singling_out,
)
from cloister.attacks.scores import rate_of
from cloister.errors import InvalidParameter, MissingDependency, UnknownColumn
from cloister.noise import Random, default_random
from cloister.printable import escape
from cloister.privacy import Guarantee, PureDP
from cloister.session import text_table
from cloister.session.door import Door
from cloister.synth.measuring import Marginals
from cloister.synth.mixture import Floats, Mixture, refitted
from cloister.synth.report import ORDERS, save, tables_of
from cloister.synth.states import Integers, counted
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.synth.model import SyntheticModel

MARK = "NOT PRIVATE: exact numbers of the real rows, for their owner alone. Never publish them."
FALSE = "0.01"
_MOST_LEARNT = 20_000
_MOST_ATTACKED = 1_000
_FEWEST_OTHERS = 40
_MOST_CLASSES = 20
_MOST_GUESSED = 5
_WEAK = (
    "The distance to the closest record proves little: a few people who are copied do not move it, near rows are right where "
    "many people are alike, and it is computed from the people at no stated cost. The guarantee is what protects."
)


@dataclass(frozen=True, kw_only=True)
class Apart:
    """How far real and synthetic tables of so many columns lie apart, in total variation."""

    order: int
    tables: int
    mean: float
    worst: float
    where: tuple[str, ...]
    """The columns of the worst table."""
    again: float
    """The mean of the real rows drawn again."""

    @property
    def score(self) -> float:
        """The k-marginal score: 1000 is the same table."""
        return 1000 * (1 - self.mean)


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The accuracy on real rows of a learner trained on synthetic ones, and of the same trained on real ones."""

    name: str
    synthetic: float
    real: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """What `SyntheticModel.compare` gives. NOT PRIVATE: exact numbers, for the owner alone.

    >>> from cloister.synth import fit_frame
    >>> from cloister.tables import Boolean, Integer
    >>> rows = {"age": [30, 40, 50] * 100, "smoker": [True, False, False] * 100}
    >>> model = fit_frame(rows, {"age": Integer(18, 99), "smoker": Boolean()}, epsilon=10)
    >>> found = model.compare(rows)
    >>> found.to_dict()["private"], len(found.orders), found.orders[0].score > 900
    (False, 2, True)
    """

    table: str
    cost: Guarantee
    rows: int
    others: int
    columns: Mapping[str, float]
    """The total variation of each column by itself."""
    orders: tuple[Apart, ...]
    auc: float
    propensity: float
    """The mean square of the propensities away from ½: 0 where rows cannot be told apart, ¼ where they always can."""
    target: str
    """What learners predict; empty where no column has few values."""
    majority: float
    learners: tuple[Learner, ...]
    memberships: tuple[MembershipResult, ...] = ()
    attributes: Mapping[str, AttributeInference]
    singled: SinglingOut | None = None
    """None where no combination of values occurs once in the synthetic rows."""
    closest: ClosestRecords | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists, with the mark."""
        found: dict[str, Any] = {
            "kind": "comparison of a synthetic table",
            "private": False,
            "mark": MARK,
            **{name: getattr(self, name) for name in ("table", "rows", "others", "auc", "propensity", "target", "majority")},
            "cost": str(self.cost),
            "columns": dict(self.columns),
            "orders": [{**vars(each), "where": list(each.where), "k_marginal_score": each.score} for each in self.orders],
            "learners": [dict(vars(each)) for each in self.learners],
            "notes": list(self.notes),
            "attacks": [each.as_card() for each in self.memberships],
        }
        found["attacks"] += [{"column": name, **each.as_card()} for name, each in self.attributes.items()]
        if self.singled is not None:
            sides = {"members": self.singled.members.rate, "others": self.singled.others.rate, "risk": self.singled.risk}
            found["attacks"].append({"attack": "singling out", **sides})
        if self.closest is not None:
            near = {"nearer": self.closest.nearer.rate, "copies": self.closest.copies, "of_others": self.closest.copies_of_others}
            found["attacks"].append({"attack": "distance to the closest record", **near})
        return found

    def __repr__(self) -> str:
        parts = [f"synthetic table of {self.table!r} ({self.cost}) against {self.rows:,} real rows", MARK, ""]
        parts += [text_table(*self._orders()), "", self._propensity()]
        if self.learners:
            parts += ["", f"learners of {self.target!r} on real rows; the majority is {self.majority:.1%}"]
            parts += [text_table(*self._learners())]
        if self.memberships:
            parts += ["", *self._attack_words(), text_table(*self._attacks()), _WEAK]
        return "\n".join([*parts, *self.notes])

    def to_html(self, *, title: str = "") -> str:
        """One page with nothing to fetch and no script, marked as not private."""
        worst = sorted(self.columns.items(), key=lambda each: -each[1])[:20]
        top = max([value for _, value in worst], default=0.0) or 1.0
        parts = [
            f"<p class='said warned'><strong>{escape(MARK)}</strong></p>",
            section("The table", facts([("data set", self.table), ("cost", str(self.cost)), ("real rows", f"{self.rows:,}")])),
            section(
                "Real against synthetic",
                table(*self._orders(), numbers=(1, 2, 3, 4)),
                bars("Total variation of single columns", [(name, value / top, f"{value:.3g}") for name, value in worst]),
                f"<p>{escape(self._propensity())}</p>",
            ),
        ]
        if self.learners:
            words = f"Accuracy on real rows for {self.target}; the majority is {self.majority:.1%}"
            parts.append(section("Learners", table(*self._learners(), numbers=(1, 2), caption=words)))
        if self.memberships:
            words = "".join(f"<p>{escape(each)}</p>" for each in self._attack_words())
            parts.append(section("Attacks", words, table(*self._attacks(), numbers=(1, 2, 3)), f"<p>{escape(_WEAK)}</p>"))
        parts += [f"<p>{escape(each)}</p>" for each in self.notes]
        return document(f"NOT PRIVATE: {title or f'{self.table}, real against synthetic'}", *parts)

    _repr_html_ = to_html

    def save(self, path: str | Path) -> None:
        """Write it, by the ending: .html, .json or .txt. The file is not private."""
        save(self, path)

    def _orders(self) -> tuple[list[str], list[list[str]]]:
        lines = [
            [
                ORDERS[each.order],
                f"{each.mean:.4f}",
                f"{each.again:.4f}",
                f"{each.score:.0f}",
                f"{each.worst:.3f}",
                " × ".join(each.where),
            ]
            for each in self.orders
        ]
        return ["tables of", "mean total variation", "real rows again", "k-marginal score", "worst", "where"], lines

    def _propensity(self) -> str:
        return f"propensity: mean square {self.propensity:.4f} (0 to 0.25), AUC {self.auc:.3f} (0.5: rows cannot be told apart)"

    def _learners(self) -> tuple[list[str], list[list[str]]]:
        lines = [[each.name, f"{each.synthetic:.3f}", f"{each.real:.3f}"] for each in self.learners]
        return ["learner", "trained on synthetic", "trained on real"], lines

    def _attack_words(self) -> list[str]:
        return [
            f"attacks on members, and the same on {self.others:,} others whom the model never saw; only the difference is a leak"
        ]

    def _attacks(self) -> tuple[list[str], list[list[str]]]:
        lines = []
        for each in self.memberships:
            most, found = each.most_under(self.cost, FALSE), each.true_positives(FALSE).rate
            lines.append(
                [f"membership, {each.attack} (AUC {each.auc:.3f})", f"{found:.1%}", f"{float(FALSE):.1%}", f"{most:.1%}"]
            )
        for name, guess in self.attributes.items():
            most = guess.most_under(self.cost, guess.others.rate)
            lines.append([f"guess of {name}", f"{guess.members.rate:.1%}", f"{guess.others.rate:.1%}", f"{most:.1%}"])
        if self.singled is not None:
            lines.append(["singling out", f"{self.singled.members.rate:.1%}", f"{self.singled.others.rate:.1%}", ""])
        assert self.closest is not None
        lines.append(["copies among synthetic rows", f"{self.closest.copies:.1%}", f"{self.closest.copies_of_others:.1%}", ""])
        return ["attack", "right of members", "of others", "most under the guarantee"], lines


def compared(
    model: SyntheticModel, rows: Any, others: Any, target: str | None, random: Random | None, progress: Callable[[str], None]
) -> Comparison:
    """A model against the rows that it was made of."""
    source = default_random() if random is None else random
    names, sizes = [each.name for each in model.columns], [each.number for each in model.columns]
    if target is not None and target not in names:
        raise UnknownColumn(
            f"The column {target!r} is unknown", why=f"the model has {', '.join(names)}", instead=f"target={names[-1]!r}"
        )
    progress("reading the rows")
    real = _states(model, rows, "rows")
    unseen = None if others is None else _states(model, others, "others")
    if unseen is not None and len(unseen) < _FEWEST_OTHERS:
        raise InvalidParameter(
            "others= is invalid", why=f"it has {len(unseen)} rows, and {_FEWEST_OTHERS} tell something", instead="others=None"
        )
    made = _states(model, model.sample(len(real), random=source).to_pydict(), "rows")
    progress("comparing tables")
    drawn = real[(source.words(len(real)) % np.uint64(len(real))).astype(np.int64)]
    orders = tuple(_apart(names, sizes, real, made, drawn, order) for order in ORDERS if order <= len(names))
    single = {name: _distance(real, made, (place,), sizes) for place, name in enumerate(names)}
    progress("telling rows apart")
    auc, propensity = told_apart(real, made, source)
    progress("training")
    aim = _target(names, sizes, target)
    majority, learners = (0.0, ()) if aim is None else _learners(real, made, unseen, aim, source)
    notes = (
        []
        if unseen is not None or aim is None
        else ["The rows that learners were tested on were among those that the model was made of."]
    )
    found = Comparison(
        table=model.table,
        cost=model.cost,
        rows=len(real),
        others=0 if unseen is None else len(unseen),
        columns=single,
        orders=orders,
        auc=auc,
        propensity=propensity,
        target="" if aim is None else names[aim],
        majority=majority,
        learners=learners,
        attributes={},
    )
    if unseen is None:
        return replace(
            found, notes=(*notes, "No attack was run: others= gives rows of the same population that the model never saw.")
        )
    progress("attacking")
    return replace(found, **_attacked(model, real, unseen, made, aim, source), notes=tuple(notes))


def _states(model: SyntheticModel, rows: Any, what: str) -> Integers:
    """The state of each value: a row a row, a column a column."""
    given = [rows.to_pydict() if hasattr(rows, "to_pydict") and hasattr(rows, "column_names") else rows]
    del rows  # no frame of a refusal may hold the rows
    names = [each.name for each in model.columns]
    columns = {each.name: each.domain for each in model.columns}
    with Door({"rows": PrivateTable(given.pop(), columns, population="rows", row_is_person=True)}, budget=PureDP(1)) as door:
        codes = door.prepared("rows").rows(names)
    found = np.column_stack([each.placed(codes[each.name]) for each in model.columns])
    found = found[(found >= 0).all(axis=1)]
    if len(found) < 4:
        raise InvalidParameter(
            f"{what}= is invalid", why="there are fewer than 4 rows to compare", instead="the rows of the table"
        )
    return found


def _distance(one: Integers, other: Integers, kept: Sequence[int], sizes: Sequence[int]) -> float:
    shares = [counted(each.T, sizes, kept) / len(each) for each in (one, other)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _apart(names: Sequence[str], sizes: Sequence[int], real: Integers, made: Integers, drawn: Integers, order: int) -> Apart:
    chosen = tables_of(sizes, order)
    found = [_distance(real, made, kept, sizes) for kept in chosen]
    place = int(np.argmax(found)) if found else 0
    return Apart(
        order=order,
        tables=len(chosen),
        mean=float(np.mean(found)) if found else 0.0,
        worst=found[place] if found else 0.0,
        where=tuple(names[each] for each in chosen[place]) if found else (),
        again=float(np.mean([_distance(real, drawn, kept, sizes) for kept in chosen])) if chosen else 0.0,
    )


def _some(rows: Integers, most: int, random: Random) -> Integers:
    return rows[random.permutation(len(rows))[:most]]


def told_apart(real: Integers, made: Integers, random: Random) -> tuple[float, float]:
    """AUC and mean square of the propensities of boosted trees, each half of the rows judged by what the other half taught.

    Rows that are copied bring the AUC below ½: what was learnt as real comes back as synthetic.
    """
    ensemble, metrics, *_ = _sklearn()
    rows = np.concatenate([_some(each, _MOST_LEARNT, random) for each in (real, made)])
    label = np.repeat([0, 1], [len(rows) - min(len(made), _MOST_LEARNT), min(len(made), _MOST_LEARNT)])
    order = random.permutation(len(rows))
    halves, guess = (order[::2], order[1::2]), np.full(len(rows), 0.5)
    for taught, judged in (halves, halves[::-1]):
        if len(set(label[taught].tolist())) == 2:
            learner = ensemble.HistGradientBoostingClassifier(random_state=0).fit(rows[taught], label[taught])
            guess[judged] = learner.predict_proba(rows[judged])[:, 1]
    return float(metrics.roc_auc_score(label, guess)), float(np.mean((guess - 0.5) ** 2))


def _target(names: Sequence[str], sizes: Sequence[int], target: str | None) -> int | None:
    """The column that is predicted: the one that is named, or the last with few values."""
    few = [place for place, size in enumerate(sizes) if 2 <= size <= _MOST_CLASSES]
    if target is not None and names.index(target) not in few:
        raise InvalidParameter(
            f"target={target!r} is invalid", why=f"it has more than {_MOST_CLASSES} values, or one", instead="target= a category"
        )
    if len(names) < 2:
        return None
    return names.index(target) if target is not None else few[-1] if few else None


def _learners(
    real: Integers, made: Integers, unseen: Integers | None, aim: int, random: Random
) -> tuple[float, tuple[Learner, ...]]:
    ensemble, _, linear, pipeline, preprocessing = _sklearn()
    rows = _some(real, len(real), random)
    tested = _some(unseen, _MOST_LEARNT, random) if unseen is not None else rows[: len(rows) // 3]
    taught = rows[len(rows) // 3 :][:_MOST_LEARNT]
    fake = _some(made, len(taught), random)
    every = [
        sorted(set(np.concatenate([each[:, place] for each in (taught, fake, tested)]).tolist()))
        for place in range(real.shape[1])
    ]
    kinds = [each for place, each in enumerate(every) if place != aim]

    def score(learner: Any, held: Integers) -> float:
        if len(set(held[:, aim].tolist())) < 2:
            return float((tested[:, aim] == held[0, aim]).mean())
        fitted = learner.fit(np.delete(held, aim, axis=1), held[:, aim])
        return float((fitted.predict(np.delete(tested, aim, axis=1)) == tested[:, aim]).mean())

    ways: dict[str, Callable[[], Any]] = {
        "logistic regression": lambda: pipeline.make_pipeline(
            preprocessing.OneHotEncoder(categories=kinds), linear.LogisticRegression(max_iter=300)
        ),
        "random forest": lambda: ensemble.RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
        "boosted trees": lambda: ensemble.HistGradientBoostingClassifier(random_state=0),
    }
    found = [Learner(name=name, synthetic=score(make(), fake), real=score(make(), taught)) for name, make in ways.items()]
    return float(np.bincount(tested[:, aim]).max() / len(tested)), tuple(found)


def _attacked(
    model: SyntheticModel, real: Integers, unseen: Integers, made: Integers, aim: int | None, random: Random
) -> dict[str, Any]:
    """All attacks, on as many members as others; half of the others are the attacker's knowledge of the population."""
    sizes = [each.number for each in model.columns]
    mixed = _some(unseen, len(unseen), random)
    known, rest = mixed[: len(mixed) // 2][: 4 * _MOST_ATTACKED], mixed[len(mixed) // 2 :]
    number = min(len(rest), len(real), _MOST_ATTACKED)
    members, others = _some(real, number, random), rest[:number]
    population = kernel_density(known, sizes)
    pair: dict[str, Any] = {"members": members, "others": others}
    memberships = [density_ratio(kernel_density(made[: 4 * _MOST_ATTACKED], sizes), population, attack="DOMIAS", **pair)]
    if model.measured is not None:
        same = refitted(_without_noise(model.measured, known), random)
        own, theirs = (lambda rows, mixture=each: density_of(mixture, rows) for each in (model.mixture, same))
        memberships.insert(0, density_ratio(own, theirs, attack="likelihood ratio of the model", **pair))
    chosen = [place for place, size in enumerate(sizes) if 2 <= size <= _MOST_CLASSES and place != aim][: _MOST_GUESSED - 1]
    hidden = ([] if aim is None else [aim]) + chosen
    found = {}
    for place in hidden if len(sizes) > 1 else []:
        right = [
            rate_of(int((guess_of(model.mixture, each, place) == each[:, place]).sum()), number) for each in (members, others)
        ]
        guessing = float(np.bincount(np.concatenate([members, others])[:, place]).max() / (2 * number))
        found[model.columns[place].name] = AttributeInference(members=right[0], others=right[1], guessing=guessing)
    return {
        "memberships": tuple(memberships),
        "attributes": found,
        "singled": _singled(made, members, others, random) if len(sizes) > 1 else None,
        "closest": closest_records(made[: 4 * _MOST_ATTACKED], members, others),
    }


def _singled(made: Integers, members: Integers, others: Integers, random: Random) -> SinglingOut | None:
    try:
        return singling_out(made, members, others, random=random)
    except InvalidParameter:  # no combination of values occurs once
        return None


def density_of(mixture: Mixture, rows: Integers) -> Floats:
    """The logarithm of the model's probability of each row of states.

    >>> mixture = Mixture(np.array([0.5, 0.5]), (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.2, 0.8], [0.6, 0.4]])))
    >>> np.exp(density_of(mixture, np.array([[0, 1], [1, 0]]))).round(6).tolist()
    [0.4, 0.3]
    """
    return np.asarray(np.logaddexp.reduce(_by_component(mixture, rows), axis=1))


def guess_of(mixture: Mixture, rows: Integers, hidden: int) -> Integers:
    """The most likely state of a hidden column, given all others; that column isn't read.

    >>> mixture = Mixture(np.array([0.5, 0.5]), (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.2, 0.8], [0.6, 0.4]])))
    >>> guess_of(mixture, np.array([[0, 0], [1, 1]]), 1).tolist()
    [1, 0]
    """
    logs = _by_component(mixture, rows, hidden)
    return np.asarray((np.exp(logs - logs.max(axis=1, keepdims=True)) @ mixture.columns[hidden]).argmax(axis=1))


def _by_component(mixture: Mixture, rows: Integers, hidden: int | None = None) -> Floats:
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(mixture.weights, 1e-300))[None, :].repeat(len(rows), axis=0)
        for place, column in enumerate(mixture.columns):
            if place != hidden:
                logs += np.log(np.maximum(column, 1e-12)).T[rows[:, place]]
    return np.asarray(logs)


def _without_noise(found: Marginals, known: Integers) -> Marginals:
    """The measured tables as they would be of other rows: exact, of as many rows, weighed alike."""
    rows = max(found.rows()[0], 1.0)
    tables = {
        kept: replace(each, counts=counted(known.T, found.sizes, kept) * rows / len(known)) for kept, each in found.tables.items()
    }
    return replace(found, tables=tables)


def _sklearn() -> Any:
    try:
        from sklearn import ensemble, linear_model, metrics, pipeline, preprocessing
    except ImportError:
        raise MissingDependency(
            "The comparison was not made", why="scikit-learn is not installed", instead='pip install "cloister[learn]"'
        ) from None
    return ensemble, metrics, linear_model, pipeline, preprocessing
