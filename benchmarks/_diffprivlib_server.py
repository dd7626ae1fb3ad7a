"""Run by the peer's own interpreter, which has diffprivlib and not us: fits its models as it is told, one JSON line an order.

An order names a model, its parameters, a file of arrays, how many fits, and which learned arrays to keep. The answer has the
scores on the test rows (accuracy, or R²), the seconds of each fit, and a file with the learned arrays. A model that would look
its bounds up in the data is refused: both sides are given the same declared bounds.
"""

import json
import sys
import time
import warnings

import numpy as np


def fits(order):
    """Do what the order says."""
    from diffprivlib import BudgetAccountant, models
    from diffprivlib.utils import PrivacyLeakWarning

    warnings.simplefilter("ignore")
    warnings.simplefilter("error", PrivacyLeakWarning)
    kind = getattr(models, order["model"])
    arrays = np.load(order["arrays"], allow_pickle=False)
    target = [arrays["y"]] if "y" in arrays else []
    test = ([arrays["X_test"]] + ([arrays["y_test"]] if "y_test" in arrays else [])) if "X_test" in arrays else []
    parameters = {name: paired(name, value) for name, value in order["parameters"].items()}
    scores, seconds, kept = [], [], {name: [] for name in order["keep"]}
    for run in range(order["runs"]):
        model = kind(**parameters, random_state=order["first"] + run, accountant=BudgetAccountant())
        begun = time.perf_counter()
        model.fit(arrays["X"].copy(), *target)
        seconds.append(time.perf_counter() - begun)
        if test and hasattr(model, "score"):
            scores.append(float(model.score(*test)))
        for name, found in kept.items():
            found.append(np.asarray(model.predict(arrays["X_test"]) if name == "predict" else getattr(model, name)))
    if kept:
        np.savez(order["answers"], **{name: np.stack(found) for name, found in kept.items()})
    return {"scores": scores, "seconds": seconds}


def paired(name, value):
    """Bounds are a tuple of two arrays or numbers."""
    if name.startswith("bounds") and isinstance(value, list):
        return tuple(np.asarray(side, dtype=float) if isinstance(side, list) else float(side) for side in value)
    return value


def serve():
    """Answer orders until there are none. Answers go to the first standard output; whatever the peer prints goes to errors."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            answer = fits(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
