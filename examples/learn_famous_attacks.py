"""Famous attacks, each on made-up people: a census block, films, prescriptions, an authentication, a model.

python examples/learn_famous_attacks.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cloister.attacks import membership
from cloister.attacks.answers import linear_parameters, regularisation, template_by_answers, template_by_distances
from cloister.attacks.linkage import Scoreboard
from cloister.attacks.published import Block, Printed
from cloister.learn import LogisticRegression
from cloister.noise import DiscreteLaplace, Random

Record: TypeAlias = dict[Any, tuple[float, float]]
"""By item: a value and a day."""
CATEGORIES = {"sex": ("F", "M"), "race": ("B", "W"), "married": ("M", "S")}
ROWS = [(8, "F", "B", "S"), (18, "M", "W", "S"), (24, "F", "W", "S"), (30, "M", "W", "M"),
        (36, "F", "B", "M"), (66, "F", "B", "M"), (84, "M", "B", "M")]  # fmt: skip
GROUPS: tuple[Mapping[str, str], ...] = (
    {}, {"sex": "F"}, {"sex": "M"}, {"race": "B"}, {"race": "W"}, {"married": "M"}, {"sex": "F", "race": "B"}
)  # fmt: skip
FEATURES = 30
"""Of the records that a model overfits."""


def printed(rows: Sequence[tuple[Any, ...]], scale: float | None = None, random: Random | None = None) -> list[Printed]:
    """How many, mean and median age of each group; with a scale, noise of it on counts and sums of ages."""
    found = []
    for where in GROUPS:
        held = [dict(zip(CATEGORIES, row[1:], strict=True)) for row in rows]
        ages = [row[0] for row, have in zip(rows, held, strict=True) if where.items() <= have.items()]
        count, total, median = len(ages), sum(ages), float(np.median(ages))
        if scale is not None:
            count = max(int(DiscreteLaplace(scale=scale).release(np.array([count]), random=random)[0]), 1)
            total = int(DiscreteLaplace(scale=115 * scale).release(np.array([total]), random=random)[0])
        found.append(Printed(count=count, mean=round(total / count, 1), median=median if scale is None else None, where=where))
    return found


def ratings(people: int, films: int, seed: int) -> list[Record]:
    """Of each person ten to forty films, the popular ones more often: stars, and the day."""
    draw = np.random.default_rng(seed)
    popular = 1 / np.arange(1, films + 1) ** 0.8
    popular /= popular.sum()
    return [
        {
            int(film): (float(draw.integers(1, 6)), float(draw.integers(0, 2000)))
            for film in draw.choice(films, size=draw.integers(10, 41), replace=False, p=popular)
        }
        for _ in range(people)
    ]


def named(records: Sequence[Record], known: int, *, days: float, tries: int, seed: int) -> tuple[float, float]:
    """Somebody remembers so many films of a person, days only within ±`days`, stars within one: named rightly, and wrongly."""
    draw, board = np.random.default_rng(seed), Scoreboard(records=records, time_scale=max(days, 1.0))
    right = wrong = 0
    for _ in range(tries):
        person = int(draw.integers(len(records)))
        films = draw.choice(np.array(list(records[person])), size=known, replace=False)
        heard = {
            int(film): (
                records[person][int(film)][0] + draw.integers(-1, 2),
                records[person][int(film)][1] + draw.uniform(-days, days),
            )
            for film in films
        }
        found = board.search(heard)
        right += found.named and found.record == person
        wrong += found.named and found.record != person
    return right / tries, wrong / tries


def pharmacies(people: int, seed: int) -> Iterator[tuple[str, str, Record, Record]]:
    """Of each person the name, the drug, prescriptions filled (no name in them), and half of the visits, on a loyalty card."""
    draw = np.random.default_rng(seed)
    for person in range(people):
        usual = draw.integers(0, 40, size=2)
        visits: Record = {(int(draw.choice(usual)), int(day) // 7): (0.0, float(day)) for day in draw.integers(0, 364, size=12)}
        seen = {visit: day for visit, day in visits.items() if draw.random() < 0.5}
        drug = str(draw.choice(["antibiotic", "statin", "antidepressant", "HIV therapy"], p=[0.5, 0.35, 0.13, 0.02]))
        yield f"person {person}", drug, visits, seen


def overfitted(rows: int, seed: int) -> tuple[Any, Any]:
    """Thirty features of which four matter: a model of few rows remembers who was in."""
    draw = np.random.default_rng(seed)
    X = np.clip(draw.normal(0, 0.4, (rows, FEATURES)), -1, 1)
    return X, (X[:, :4].sum(axis=1) + draw.normal(0, 0.4, rows) > 0).astype(int)


def remembered(make: Any, *, rows: int = 160, shadows: int = 24) -> tuple[float, float]:
    """How often an attacker ranks a member above another person (a guess: 0.5), and the accuracy on others."""
    X, y = overfitted(rows, 1)
    others, truth = overfitted(3000, 2)
    found = membership(lambda X, y: make().fit(X, y), X, y, shadows=shadows, targets=12)
    return found.auc, float(np.mean([make().fit(X[::2], y[::2]).score(others, truth) for _ in range(5)]))


def penalised(penalty: float) -> Any:
    """scikit-learn's logistic regression: Σ losses + penalty/2·|w|²."""
    from sklearn.linear_model import LogisticRegression as Plain

    return Plain(C=1 / penalty, max_iter=3000)


def stolen_penalty(penalty: float) -> float:
    """From the weights of a model and the rows it was made of: the penalty that somebody chose and did not tell."""
    X, y = overfitted(400, 1)
    model = penalised(penalty).fit(X, y)
    return 2 * regularisation(model.coef_, X.T @ (model.predict_proba(X)[:, 1] - y))


def main() -> None:
    """Each attack, and what stops it."""
    block = Block(values=range(116), categories=CATEGORIES)
    found = block.rebuilt(printed(ROWS))
    true = sorted(found[0]) == sorted(ROWS)
    print(f"census block: {len(found)} set of rows explains what was printed; it is the truth: {true}")
    noisy = [block.rebuilt(printed(ROWS, 14.0, Random.deterministic(seed)), most=1) for seed in range(5)]
    print(f"the same with 14 numbers at ε = 1 in all: explained by any rows in {sum(map(bool, noisy))} of 5 draws\n")

    records = ratings(2000, 1500, 1)
    for known in (2, 4, 8):
        right, wrong = named(records, known, days=14, tries=100, seed=known)
        print(f"films: {known} known, days within two weeks: {right:.0%} named rightly, {wrong:.0%} wrongly")
    people = list(pharmacies(1000, 1))
    board = Scoreboard(records=[visits for _, _, visits, _ in people], time_scale=1)
    hits = [board.search(seen).record == place for place, (_, _, _, seen) in enumerate(people[:100])]
    print(f"pharmacies: {np.mean(hits):.0%} of 100 customers found among 1,000 patients: their drugs are known\n")

    hidden = np.random.default_rng(1).normal(0, 0.5, 16)
    solved = template_by_distances(lambda point: float(np.linalg.norm(point - hidden)), 16)
    opened = template_by_answers(lambda point: bool(np.linalg.norm(point - hidden) < 1), hidden + 0.1)
    errors = [np.abs(found - hidden).max() for found in (solved, opened)]
    print(f"template of 16 features: off by {errors[0]:.0e} after 17 scores, {errors[1]:.0e} by yes and no")
    X, y = overfitted(400, 1)
    model = LogisticRegression(epsilon=1, bounds=(-1, 1)).fit(X, y)
    weights, _ = linear_parameters(lambda rows: model.predict_proba(rows)[:, 1], FEATURES)
    off = np.abs(weights - model.coef_.ravel()).max()
    print(f"weights of a logistic model at ε = 1, from {FEATURES + 1} answers: off by {off:.0e}")
    print(f"a penalty of 2.5, from the weights and the rows: {stolen_penalty(2.5):.2f}\n")
    for penalty in (0.1, 1, 10, 100):
        told, accuracy = remembered(lambda penalty=penalty: penalised(penalty))
        print(f"penalty {penalty:g}: a member is ranked above another {told:.0%} of the time; accuracy {accuracy:.0%}")
    for epsilon in (1, 10):
        told, accuracy = remembered(lambda epsilon=epsilon: LogisticRegression(epsilon=epsilon, bounds=(-1, 1)))
        print(f"ε = {epsilon}: {told:.0%}; accuracy {accuracy:.0%}")


if __name__ == "__main__":
    main()
