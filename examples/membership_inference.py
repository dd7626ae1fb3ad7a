"""Who was in the training set? An overfitted decision tree tells; a private one, which predicts no worse, doesn't.

python examples/membership_inference.py
"""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeClassifier

from cloister import learn
from cloister.attacks import MembershipResult, membership
from cloister.privacy import PureDP

EPSILON = 1
SHADOWS, TARGETS, TRIALS = 64, 24, 20


def main() -> None:
    """Attack both trees, and compare what they are good for."""
    X, progress = load_diabetes(return_X_y=True)
    y = (progress > 140).astype(int)
    print(f"{len(X)} patients; each tree learns from a random half of them whether diabetes got worse by more than 140 points\n")
    for name, fit in (("raw tree", raw), (f"private tree, ε = {EPSILON}", private)):
        print(f"{name}: right about {accuracy(fit, X, y):.0%} of patients that it never saw")
        for attack in ("loss", "online"):
            found = membership(fit, X, y, attack=attack, shadows=SHADOWS, targets=TARGETS)
            print(f"  {found.attack}")
            print(f"    AUC {found.auc:.2f}, balanced accuracy {found.balanced_accuracy:.2f}")
            for at, said in (("0.001", "0.1 %"), ("0.01", "1 %")):
                print(f"    members found at {said} false alarms: {found.true_positives(at)}")
        print()
    most = MembershipResult.most_under(PureDP(EPSILON), "0.01")
    print(f"whatever the attack, ε = {EPSILON} allows at most {most:.1%} of the members at 1 % false alarms")


def raw(X: Any, y: Any) -> Any:
    """Grown until every leaf is pure: it has its rows by heart."""
    return DecisionTreeClassifier().fit(X, y)


def private(X: Any, y: Any) -> Any:
    """The features are scaled by their publisher; none is beyond 0.2."""
    return learn.DecisionTreeClassifier(epsilon=EPSILON, bounds=(-0.2, 0.2)).fit(X, y)


def accuracy(fit: Any, X: Any, y: Any) -> float:
    """Mean over trials on half of the patients, tested on the other half."""
    halves = [(slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))] * (TRIALS // 2)
    return sum(float((fit(X[one], y[one]).predict(X[other]) == y[other]).mean()) for one, other in halves) / TRIALS


if __name__ == "__main__":
    main()
