"""A synthetic model held against the rows that it was made of, by their owner. NOT PRIVATE: exact numbers, for the owner alone.

- *Tables*: the total variation between real and synthetic tables of one, two and three columns, and the k-marginal score as
  SDNist defines it: 1000·(1 − mean total variation); over all tables where SDNist draws some at random. Beside it the same of
  the real rows drawn again: what rows of that number are off by without any noise.
- *Propensity* (Woo, Reiter, Oganian & Karr 2009; Snoke, Raab, Nowok, Dibben & Slavkovic 2018): a classifier that tells real from
  synthetic rows, judged on rows that it was not trained on. Its AUC is ½, and the mean square of its propensities away from ½ is
  0, where it cannot.
- *Regressions* of each number and day on the others, and the first two *principal components* with a picture (`linear.py`).
- *Learners*: trained on synthetic rows and on as many real ones, both tested on real rows.
- *Attacks* (`cloister.attacks`), where rows are given that the model never saw: each tells what it finds of members beside what
  the same attack finds of those others. Where no others are given, no attack is run: without them a success is no leak.

Nothing of it gets into a model. Rows with a value missing where the column declares none are left out, as in what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.anonymize.document import Document, Part, drawn, facts, said, section, table
from cloister.anonymize.paper import bars, clouds
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
from cloister.errors import InvalidParameter
from cloister.lazily import needing
from cloister.noise import Random, default_random
from cloister.privacy import Guarantee, PureDP
from cloister.session import Door, unknown_column
from cloister.session.workloads.marginals import Marginal
from cloister.synth.linear import Components, Regression, components, regressions
from cloister.synth.measuring import Floats, Marginals
from cloister.synth.mixture import Mixture, refitted
from cloister.synth.pieces import Integers
from cloister.synth.report import ORDERS, tables_of
from cloister.synth.states import counted
from cloister.tables import PrivateTable

if TYPE_CHECKING:
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
class Comparison(Document):
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
    regressed: tuple[Regression, ...] = ()
    components: Components | None = None
    """None where fewer than two things vary."""
    memberships: tuple[MembershipResult, ...] = ()
    attributes: Mapping[str, AttributeInference] = field(default_factory=dict)
    singled: SinglingOut | None = None
    """None where no combination of values occurs once in the synthetic rows."""
    closest: ClosestRecords | None = None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of the page."""
        return f"{self.table}, real against synthetic"

    def to_html(self, *, title: str = "") -> str:
        """One page with nothing to fetch and no script, marked as not private."""
        return super().to_html(title=f"NOT PRIVATE: {title or self.title}")

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists, with the mark."""
        attacks = [each.as_card() for each in self.memberships]
        attacks += [{"column": name, **each.as_card()} for name, each in self.attributes.items()]
        if self.singled is not None:
            sides = {"members": self.singled.members.rate, "others": self.singled.others.rate, "risk": self.singled.risk}
            attacks.append({"attack": "singling out", **sides})
        if self.closest is not None:
            near = {"nearer": self.closest.nearer.rate, "copies": self.closest.copies, "of_others": self.closest.copies_of_others}
            attacks.append({"attack": "distance to the closest record", **near})
        return {
            "kind": "comparison of a synthetic table",
            "private": False,
            "mark": MARK,
            **{name: getattr(self, name) for name in ("table", "rows", "others", "auc", "propensity", "target", "majority")},
            "cost": str(self.cost),
            "columns": dict(self.columns),
            "orders": [{**vars(each), "where": list(each.where), "k_marginal_score": each.score} for each in self.orders],
            "learners": [dict(vars(each)) for each in self.learners],
            "regressions": [
                {**vars(each), "real": dict(each.real), "synthetic": dict(each.synthetic)} for each in self.regressed
            ],
            "component_shares": None if self.components is None else [list(each) for each in self.components.shares],
            "notes": list(self.notes),
            "attacks": attacks,
        }

    def parts(self) -> list[Part]:
        """The mark, the table, how far apart real and synthetic are, learners, attacks, and what was left out."""
        worst = sorted(self.columns.items(), key=lambda each: -each[1])[:20]
        top = max([value for _, value in worst], default=0.0) or 1.0
        orders = [
            [ORDERS[each.order], f"{each.mean:.4f}", f"{each.again:.4f}", f"{each.score:.0f}", f"{each.worst:.3f}"]
            for each in self.orders
        ]
        found = [
            said(MARK, kind="said warned"),
            section("The table", facts(("data set", self.table), ("cost", str(self.cost)), ("real rows", f"{self.rows:,}"))),
            section(
                "Real against synthetic",
                table(
                    ["tables of", "mean total variation", "real rows again", "k-marginal score", "worst", "where"],
                    [[*line, " × ".join(each.where)] for line, each in zip(orders, self.orders, strict=True)],
                    numbers=(1, 2, 3, 4),
                ),
                drawn(bars("Total variation of single columns", [(name, value / top, f"{value:.3g}") for name, value in worst])),
                said(
                    f"propensity: mean square {self.propensity:.4f} (0 to 0.25), AUC {self.auc:.3f} (0.5: rows cannot be told "
                    "apart)"
                ),
            ),
        ]
        found += self._linear()
        if self.learners:
            heads = ["learner", "trained on synthetic", "trained on real"]
            lines = [[each.name, f"{each.synthetic:.3f}", f"{each.real:.3f}"] for each in self.learners]
            words = f"Accuracy on real rows for {self.target}; the majority is {self.majority:.1%}"
            found.append(section("Learners", table(heads, lines, numbers=(1, 2), caption=words)))
        if self.memberships:
            words = f"Attacks on members, and on {self.others:,} others whom the model never saw; only the difference is a leak."
            heads = ["attack", "right of members", "of others", "most under the guarantee"]
            found.append(section("Attacks", said(words), table(heads, self._attacks(), numbers=(1, 2, 3)), said(_WEAK)))
        return [*found, *(said(each) for each in self.notes)]

    def _linear(self) -> list[Part]:
        """Regressions and principal components."""
        inside: list[Part] = []
        if self.regressed:
            heads = ["regression of", "explained, real", "synthetic", "coefficient apart", "synthetic - real"]
            lines = [
                [each.response, *(f"{share:.3f}" for share in each.explained), each.apart[0], f"{each.apart[1]:+.3f}"]
                for each in self.regressed
            ]
            words = "Least squares on all other numbers and days, in deviations of the real rows, and what differs most."
            inside.append(table(heads, lines, numbers=(1, 2, 4), caption=words))
        if self.components is not None:
            real, made = (" + ".join(f"{share:.1%}" for share in each) for each in self.components.shares)
            inside.append(
                said(f"first two principal components of the real rows: {real} of their variance, {made} of the synthetic")
            )
            both = self.components.real, self.components.synthetic
            inside.append(drawn(clouds("Rows along the first two principal components", ("real rows", "synthetic rows"), both)))
        return [section("Regressions and principal components", *inside)] if inside else []

    def _attacks(self) -> list[list[str]]:
        found: list[tuple[str, float, float, float | None]] = []
        for each in self.memberships:
            words = f"membership, {each.attack} (AUC {each.auc:.3f})"
            found.append((words, each.true_positives(FALSE).rate, float(FALSE), each.most_under(self.cost, FALSE)))
        for name, guess in self.attributes.items():
            most = guess.most_under(self.cost, guess.others.rate)
            found.append((f"guess of {name}", guess.members.rate, guess.others.rate, most))
        if self.singled is not None:
            found.append(("singling out", self.singled.members.rate, self.singled.others.rate, None))
        if self.closest is not None:
            found.append(("copies among synthetic rows", self.closest.copies, self.closest.copies_of_others, None))
        return [[words, *("" if each is None else f"{each:.1%}" for each in rates)] for words, *rates in found]


def compared(
    model: SyntheticModel, rows: Any, others: Any, target: str | None, random: Random | None, progress: Callable[[str], None]
) -> Comparison:
    """A model against the rows that it was made of."""
    source = default_random() if random is None else random
    names, sizes = [each.name for each in model.columns], [each.number for each in model.columns]
    if target is not None and target not in names:
        raise unknown_column(target, model.table, names)
    progress("reading the rows")
    real, unseen = _states(model, rows, "rows"), None if others is None else _states(model, others, "others")
    if unseen is not None and len(unseen) < _FEWEST_OTHERS:
        raise InvalidParameter(
            "others= is invalid", why=f"it has {len(unseen)} rows, and {_FEWEST_OTHERS} tell something", instead="others=None"
        )
    made = _states(model, model.sample(len(real), random=source), "rows")
    progress("comparing tables")
    drawn = real[(source.words(len(real)) % np.uint64(len(real))).astype(np.int64)]
    orders = tuple(_apart(names, sizes, real, made, drawn, order) for order in ORDERS if order <= len(names))
    single = {name: _distance(real, made, (place,), sizes) for place, name in enumerate(names)}
    progress("telling rows apart")
    auc, propensity = told_apart(real, made, source)
    progress("training")
    aim = _target(names, sizes, target)
    majority, learners = (0.0, ()) if aim is None else _learners(real, made, unseen, aim, source)
    notes: list[str] = []
    if unseen is None and aim is not None:
        notes.append("The rows that learners were tested on were among those that the model was made of.")
    if unseen is None:
        notes.append("No attack was run: others= gives rows of the same population that the model never saw.")
    else:
        progress("attacking")
    return Comparison(
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
        regressed=regressions(model.columns, real, made),
        components=components(model.columns, real, made),
        notes=tuple(notes),
        **({} if unseen is None else _attacked(model, real, unseen, made, aim, source)),
    )


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


def _distance(one: Integers, other: Integers, kept: Marginal, sizes: Sequence[int]) -> float:
    shares = [counted(each.T, sizes, kept) / len(each) for each in (one, other)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _apart(names: Sequence[str], sizes: Sequence[int], real: Integers, made: Integers, drawn: Integers, order: int) -> Apart:
    chosen = tables_of(sizes, order)
    if not chosen:
        return Apart(order=order, tables=0, mean=0.0, worst=0.0, where=(), again=0.0)
    found, again = ([_distance(real, other, kept, sizes) for kept in chosen] for other in (made, drawn))
    return Apart(
        order=order,
        tables=len(chosen),
        mean=float(np.mean(found)),
        worst=max(found),
        where=tuple(names[place] for place in chosen[found.index(max(found))]),
        again=float(np.mean(again)),
    )


def _some(rows: Integers, most: int, random: Random) -> Integers:
    return rows[random.permutation(len(rows))[:most]]


def told_apart(real: Integers, made: Integers, random: Random) -> tuple[float, float]:
    """AUC and mean square of the propensities of boosted trees, each half of the rows judged by what the other half taught.

    Rows that are copied bring the AUC below ½: what was learnt as real comes back as synthetic.
    """
    learn = _sklearn()
    parts = [_some(each, _MOST_LEARNT, random) for each in (real, made)]
    order = random.permutation(sum(len(each) for each in parts))
    rows, label = np.concatenate(parts)[order], np.repeat([0, 1], [len(each) for each in parts])[order]
    trees = learn.ensemble.HistGradientBoostingClassifier(random_state=0)
    guess = learn.model_selection.cross_val_predict(trees, rows, label, cv=2, method="predict_proba")[:, 1]
    return float(learn.metrics.roc_auc_score(label, guess)), float(np.mean((guess - 0.5) ** 2))


def _target(names: Sequence[str], sizes: Sequence[int], target: str | None) -> int | None:
    """The column that is predicted: the one that is named, or the last with few values."""
    few = _few(sizes)
    if target is not None and names.index(target) not in few:
        raise InvalidParameter(
            f"target={target!r} is invalid", why=f"it has more than {_MOST_CLASSES} values, or one", instead="target= a category"
        )
    if len(names) < 2 or not few:
        return None
    return few[-1] if target is None else names.index(target)


def _few(sizes: Sequence[int]) -> list[int]:
    return [place for place, size in enumerate(sizes) if 2 <= size <= _MOST_CLASSES]


def _learners(
    real: Integers, made: Integers, unseen: Integers | None, aim: int, random: Random
) -> tuple[float, tuple[Learner, ...]]:
    learn, rows = _sklearn(), _some(real, len(real), random)
    tested = _some(unseen, _MOST_LEARNT, random) if unseen is not None else rows[: len(rows) // 3]
    taught = rows[len(rows) // 3 :][:_MOST_LEARNT]
    fake = _some(made, len(taught), random)

    def score(learner: Any, held: Integers) -> float:
        if len(set(held[:, aim].tolist())) < 2:
            return float((tested[:, aim] == held[0, aim]).mean())
        fitted = learner.fit(np.delete(held, aim, axis=1), held[:, aim])
        return float((fitted.predict(np.delete(tested, aim, axis=1)) == tested[:, aim]).mean())

    ways: dict[str, Callable[[], Any]] = {
        "logistic regression": lambda: learn.pipeline.make_pipeline(
            learn.preprocessing.OneHotEncoder(handle_unknown="ignore"), learn.linear_model.LogisticRegression(max_iter=300)
        ),
        "random forest": lambda: learn.ensemble.RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
        "boosted trees": lambda: learn.ensemble.HistGradientBoostingClassifier(random_state=0),
    }
    found = [Learner(name=name, synthetic=score(make(), fake), real=score(make(), taught)) for name, make in ways.items()]
    return float(np.bincount(tested[:, aim]).max() / len(tested)), tuple(found)


def _attacked(
    model: SyntheticModel, real: Integers, unseen: Integers, made: Integers, aim: int | None, random: Random
) -> dict[str, Any]:
    """All attacks, on as many members as others; half of the others are the attacker's knowledge of the population."""
    sizes = [each.number for each in model.columns]
    shown = Mixture(model.mixture.weights, model.mixture.columns[: len(sizes)])
    mixed = _some(unseen, len(unseen), random)
    known, rest = mixed[: len(mixed) // 2][: 4 * _MOST_ATTACKED], mixed[len(mixed) // 2 :]
    number = min(len(rest), len(real), _MOST_ATTACKED)
    members, others = _some(real, number, random), rest[:number]
    population = kernel_density(known, sizes)
    pair: dict[str, Any] = {"members": members, "others": others}
    memberships = [density_ratio(kernel_density(made[: 4 * _MOST_ATTACKED], sizes), population, attack="DOMIAS", **pair)]
    if model.measured is not None:
        same = refitted(_without_noise(model.measured, known), random)
        own, theirs = (lambda rows, mixture=each: density_of(mixture, rows) for each in (shown, same))
        memberships.insert(0, density_ratio(own, theirs, attack="likelihood ratio of the model", **pair))
    hidden = ([] if aim is None else [aim]) + [place for place in _few(sizes) if place != aim][: _MOST_GUESSED - 1]
    found = {}
    for place in hidden if len(sizes) > 1 else []:
        right = [rate_of(int((guess_of(shown, each, place) == each[:, place]).sum()), number) for each in (members, others)]
        guessing = float(np.bincount(np.concatenate([members, others])[:, place]).max() / (2 * number))
        found[model.columns[place].name] = AttributeInference(members=right[0], others=right[1], guessing=guessing)
    singled = None
    with suppress(InvalidParameter):  # no combination of values occurs once
        singled = singling_out(made, members, others, random=random) if len(sizes) > 1 else None
    return {
        "memberships": tuple(memberships),
        "attributes": found,
        "singled": singled,
        "closest": closest_records(made[: 4 * _MOST_ATTACKED], members, others),
    }


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
    rows, number = max(found.rows()[0], 1.0), known.shape[1]
    tables = {
        kept: replace(each, counts=counted(known.T, found.sizes, kept) * rows / len(known))
        for kept, each in found.tables.items()
        if max(kept) < number
    }
    return replace(found, sizes=found.sizes[:number], tables=tables)


def _sklearn() -> Any:
    with needing("The comparison was not made", "scikit-learn is not installed", "learn"):
        import sklearn
        from sklearn import ensemble, linear_model, metrics, model_selection, pipeline, preprocessing  # noqa: F401 its parts
    return sklearn
