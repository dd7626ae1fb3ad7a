"""A small network with noise: accuracy on handwritten digits and breast cancer, and how fast its accountant is."""

from __future__ import annotations

import os
import time

import numpy as np
from _learn_problems import cancer, digits
from _report import report

from cloister.learn.networks.accountant import epsilon_for, noise_for
from cloister.learn.networks.neural import NeuralClassifier

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 3 if QUICK else 20
DELTA = "1e-5"
LIMITS = {("digits", "1"): 0.86, ("digits", "8"): 0.94, ("breast cancer", "1"): 0.93, ("breast cancer", "8"): 0.95}


def main() -> None:
    """Measure, print for people, print for programs."""
    for (name, epsilon), limit in LIMITS.items():
        problems = [(digits if name == "digits" else cancer)(seed) for seed in range(RUNS)]
        for hidden in ((32,), ()):
            scores, seconds = [], []
            for problem in problems:
                model = NeuralClassifier(
                    epsilon=epsilon, delta=DELTA, bounds=problem.bounds, classes=problem.classes, hidden=hidden
                )
                begun = time.perf_counter()
                model.fit(problem.X, problem.y)
                seconds.append(time.perf_counter() - begun)
                scores.append(model.score(problem.X_test, problem.y_test))
            words = f"δ = {DELTA}, ± {np.std(scores):.3f}, {RUNS} splits, {np.median(seconds):.2f} s a fit"
            mean = float(np.mean(scores))
            if hidden:
                report(f"{name}, ε = {epsilon}, network with a hidden layer: accuracy", mean, limit, words)
            else:
                print(f"{name}, ε = {epsilon}, without a hidden layer: {mean:.3f}; {words}", flush=True)
        raw = [
            NeuralClassifier(privacy=None, bounds=p.bounds, classes=p.classes).fit(p.X, p.y).score(p.X_test, p.y_test)
            for p in problems[:5]
        ]
        print(f"{name} without noise: {np.mean(raw):.3f}", flush=True)
    accountant()


def accountant() -> None:
    """Against dp-accounting's, from the same run to ε."""
    import dp_accounting as root
    from dp_accounting import pld

    given = {"noise": "1", "rate": "0.01", "steps": 1000}
    begun = time.perf_counter()
    ours = float(epsilon_for(**given, delta=DELTA))
    mine = time.perf_counter() - begun
    begun = time.perf_counter()
    step = root.PoissonSampledDpEvent(0.01, root.GaussianDpEvent(1.0))
    theirs = pld.PLDAccountant().compose(root.SelfComposedDpEvent(step, 1000)).get_epsilon(float(DELTA))
    other = time.perf_counter() - begun
    words = f"ε = {ours:.5f}, dp-accounting {theirs:.5f}, 1000 steps of rate 0.01 with noise 1"
    report("accountant of sampled gradients, difference of ε", abs(ours / theirs - 1), 0.01, words, most=True)
    report("accountant of sampled gradients, times faster", other / mine, 1, "against dp-accounting")
    begun = time.perf_counter()
    noise_for(epsilon=1, delta=DELTA, rate="0.02", steps=500)
    report("noise for an ε, seconds", time.perf_counter() - begun, 5, "500 steps of rate 0.02", most=True)


if __name__ == "__main__":
    main()
