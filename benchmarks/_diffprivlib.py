"""diffprivlib's models, fitted in this run with the bounds that ours have, by an interpreter of its own.

It needs other releases of scikit-learn than ours. Its interpreter is named by CLOISTER_PEER_DIFFPRIVLIB (an environment of its
own with `pip install diffprivlib==0.6.6 "scikit-learn<1.8"`); without it the comparison is left out, and that is said aloud.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

VARIABLE = "CLOISTER_PEER_DIFFPRIVLIB"
RELEASE = "diffprivlib 0.6.6"


@dataclass(frozen=True, kw_only=True)
class Fits:
    """What the peer did: the score and the seconds of each fit, and its learned arrays, stacked with a fit a row."""

    scores: list[float]
    seconds: list[float]
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The mean of the scores."""
        return float(np.mean(self.scores))

    @property
    def second(self) -> float:
        """The median of the seconds."""
        return float(np.median(self.seconds))


@cache
def available() -> bool:
    """Whether the peer can be run; where it cannot, this is said once, aloud."""
    found = bool(os.environ.get(VARIABLE))
    if not found:
        print(f"*** {RELEASE} IS NOT COMPARED WITH: {VARIABLE} names no interpreter that has it ***", flush=True)
    return found


def theirs(
    model: str,
    parameters: Mapping[str, Any],
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    X_test: npt.ArrayLike | None = None,
    y_test: npt.ArrayLike | None = None,
    runs: int = 50,
) -> list[float]:
    """The scores of so many fits of theirs: accuracy for classes, R² for numbers."""
    return fits(model, parameters, X, y, X_test, y_test, runs=runs).scores


def fits(
    model: str,
    parameters: Mapping[str, Any],
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    X_test: npt.ArrayLike | None = None,
    y_test: npt.ArrayLike | None = None,
    *,
    runs: int = 50,
    keep: Sequence[str] = (),
    first: int = 0,
) -> Fits:
    """So many fits of theirs. `keep` names learned attributes to bring back ("cluster_centers_", "components_"), or "predict" for
    what each says of the test rows; the noise of fit number i follows from `first` + i.
    """
    process, folder = _server()
    given = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    arrays, answers = folder / "arrays.npz", folder / "answers.npz"
    np.savez(arrays, **{name: np.asarray(value) for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    order = {
        "model": model,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "arrays": str(arrays),
        "answers": str(answers),
        "runs": runs,
        "keep": list(keep),
        "first": first,
    }
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the interpreter that {VARIABLE} names ended; has it {RELEASE}?")
    answer = json.loads(line)
    if "error" in answer:
        raise RuntimeError(f"{RELEASE}, {model}: {answer['error']}")
    kept: dict[str, npt.NDArray[Any]] = {}
    if keep:
        with np.load(answers, allow_pickle=False) as found:
            kept = {name: found[name] for name in keep}
    return Fits(scores=answer["scores"], seconds=answer["seconds"], arrays=kept)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


@cache
def _server() -> tuple[subprocess.Popen[str], Path]:
    if not available():
        raise RuntimeError(f"{VARIABLE} names no interpreter; ask `available()` first")
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    script = Path(__file__).with_name("_diffprivlib_server.py")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.Popen(
        [os.environ[VARIABLE], "-B", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        env=environment,
    )
    atexit.register(process.kill)
    return process, Path(folder.name)
