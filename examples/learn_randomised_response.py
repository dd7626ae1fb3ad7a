"""The marijuana survey: 10,000 randomised answers, with three pairs of coins.

python examples/learn_randomised_response.py
"""

from __future__ import annotations

import math

import numpy as np

from cloister.noise import BinaryResponse

DESIGNS = {
    "a fair coin, twice": (BinaryResponse(truth="1/2"), "ln 3", 3),
    "a coin of 0.8, then a fair one": (BinaryResponse(truth="0.8"), "ln 9", 9),
    "a coin of 0.8, twice": (BinaryResponse(truth="0.8", coin="0.8"), "ln 21", 21),
}


def main(persons: int = 10_000, smokers: int = 3_000) -> None:
    """Ask everybody with each design; print what is estimated, how well, and what each answer promises."""
    truth = np.arange(persons) < smokers
    print(f"{smokers / persons:.0%} of {persons:,} people smoke\n")
    for name, (design, logarithm, ratio) in DESIGNS.items():
        reports = design.release(truth)
        estimate, margin = design.estimate(reports), design.margin(0.95, reports=persons)
        assert abs(float(design.guarantee.epsilon) - math.log(ratio)) < 1e-12
        print(
            f"{name:<31} {reports.mean():.1%} say yes; estimated {estimate:.1%} ± {margin:.1%}; "
            f"ε = {logarithm} = {math.log(ratio):.2f}"
        )


if __name__ == "__main__":
    main()
