"""Who misses a payment? Naive Bayes on ten mortgages: exactly, at ε = 1, and at ε = 1 with a thousand times the rows.

python examples/learn_mortgage.py
"""

from __future__ import annotations

import numpy as np

from cloister.learn import CategoricalNB

AGES, INCOMES, GENDERS = ("young", "medium", "old"), ("low", "medium", "high"), ("female", "male")
MISSED = ["young low male", "young high female", "medium low male", "old medium female"]
PAID = [
    "young high male",
    "medium medium male",
    "old high female",
    "old low female",
    "old high male",
    "medium high male",
]
APPLICANT = "young medium female"
"""Ten rows made so that each published share comes out for this applicant, and the products 0.025 (missed) and 0.0056 (paid)."""


def coded(rows: list[str]) -> np.ndarray:
    """Rows as numbers: which age, which income, which gender."""
    words = [row.split() for row in rows]
    return np.array([[AGES.index(age), INCOMES.index(income), GENDERS.index(gender)] for age, income, gender in words])


def products(missed: list[str], paid: list[str]) -> tuple[float, float]:
    """The exact products of the article: share of the class times the shares of the applicant's values in it."""
    total = len(missed) + len(paid)
    who = coded([APPLICANT])[0]
    return tuple(float(len(rows) / total * (coded(rows) == who).mean(axis=0).prod()) for rows in (missed, paid))  # type: ignore[return-value]


def private(times: int, epsilon: str) -> bool:
    """Whether a private model, from each row so many times, expects the applicant to miss a payment."""
    X = np.repeat(coded(MISSED + PAID), times, axis=0)
    y = np.repeat([1] * len(MISSED) + [0] * len(PAID), times)
    model = CategoricalNB(epsilon=epsilon, categories=[3, 3, 2], classes=[0, 1]).fit(X, y)
    return bool(model.predict(coded([APPLICANT]))[0] == 1)


def main() -> None:
    """The exact answer, what it tells of one person, and the private one."""
    missed, paid = products(MISSED, PAID)
    print(f"exactly: missed {missed:.3f}, paid {paid:.4f}")
    print(f"without the last who missed: missed {products(MISSED[:-1], PAID)[0]:.3f}; the zero tells that she was the only one\n")
    for times in (1, 10, 100, 1000):
        right = sum(private(times, "1") for _ in range(100))
        print(f"{10 * times:>6,} rows at ε = 1: says 'missed' in {right} of 100 runs")


if __name__ == "__main__":
    main()
