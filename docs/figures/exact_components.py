"""What exact components of a circuit are good for: F1 by their number, on numpy's; scikit-learn's wines at ten owners."""

from __future__ import annotations

import altair as alt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cloister.together.circuits import FixedPoint, Moments, Program

COMPONENTS, OWNERS = 8, 10


def chart() -> alt.LayerChart:
    """The program runs in the clear, which is the circuit's result to the last bit."""
    wines = load_wine()
    low, high = wines.data.min(axis=0), wines.data.max(axis=0)
    rows = (wines.data - low) / (high - low) * 2 - 1
    train = np.arange(len(rows)) % 10 < 7
    how = Moments(features=rows.shape[1], rows=1000)
    kind = FixedPoint(bits=how.bits, shape=(how.length,))
    program = Program(lambda a, b: how.components(a + b, COMPONENTS), garbler={"a": kind}, evaluator={"b": kind}, bits=256)
    parts = [how.of_rows(part, -1, 1) for part in np.array_split(rows[train], OWNERS)]
    ours = np.asarray(program.as_numbers(a=sum(parts[1:]), b=parts[0]), dtype=np.float64)
    theirs = np.linalg.eigh(np.cov(rows[train].T))[1][:, ::-1]
    points = [
        {"components": count, "F1": score(rows, wines.target, train, columns[:, :count]), "by": name}
        for name, columns in (("numpy", theirs), ("the circuit", ours))
        for count in range(1, COMPONENTS + 1)
    ]
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("components:O", title="components", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("F1:Q", scale=alt.Scale(domain=[0.6, 1]), title="weighted F1 of a support vector machine"),
    )
    colour = alt.Color("by:N", title=None, scale=alt.Scale(domain=["numpy", "the circuit"], range=["#c9714f", "#3f6c8f"]))
    lines = base.mark_line(strokeWidth=2).encode(color=colour).transform_filter("datum.by == 'numpy'")
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(color=colour).transform_filter("datum.by != 'numpy'")
    return alt.layer(lines, dots).properties(width=420, height=220)


def score(rows: np.ndarray, labels: np.ndarray, train: np.ndarray, directions: np.ndarray) -> float:
    """On the rows that are kept back."""
    model = make_pipeline(StandardScaler(), SVC(C=10)).fit(rows[train] @ directions, labels[train])
    return float(f1_score(labels[~train], model.predict(rows[~train] @ directions), average="weighted"))
