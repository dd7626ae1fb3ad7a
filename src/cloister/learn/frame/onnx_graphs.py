"""What each model says of a row, as a graph of ONNX operators: the same numbers as `predict`, `predict_proba` and `transform`.

A graph holds what the model released and what was declared, and nothing else: it is made of the learned attributes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.linear_models.random_features import PARTS_OF_A_TURN

Array = npt.NDArray[Any]


@dataclass
class Graph:
    """Nodes and constants that grow with each operator; a value is called by its name."""

    onnx: Any
    """The package of that name."""
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    columns: dict[str, int | None] = field(default_factory=dict)
    """Of each output: how many columns; None: one number a row."""
    kinds: dict[str, int] = field(default_factory=dict)

    def constant(self, value: Any) -> str:
        """A named constant; texts are texts, whole numbers int64, truth values bool, all else double."""
        array, name = np.asarray(value), f"c{len(self.constants)}"
        if array.dtype.kind in "UO":
            texts = [str(item).encode() for item in array.ravel().tolist()]
            self.constants.append(self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, array.shape, texts))
        else:
            kind = {"b": np.bool_, "i": np.int64, "u": np.int64}.get(array.dtype.kind, np.float64)
            self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array, dtype=kind), name))
        return name

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """The result of an operator; an input that is not a name becomes a constant."""
        named = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, named, [name], **attributes))
        return name

    def output(self, name: str, value: str, *, columns: int | None, like: Any = 0.0) -> None:
        """A result of the whole graph, of the kind of `like`."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        proto = self.onnx.TensorProto
        kinds = {"U": proto.STRING, "O": proto.STRING, "i": proto.INT64, "u": proto.INT64, "b": proto.BOOL}
        self.columns[name], self.kinds[name] = columns, kinds.get(np.asarray(like).dtype.kind, proto.DOUBLE)

    def cast(self, value: str, kind: str) -> str:
        """As another kind of number."""
        return self.op("Cast", value, to=int(getattr(self.onnx.TensorProto, kind)))

    def flat(self, value: str) -> str:
        """One column as one number a row."""
        return self.op("Squeeze", value, np.array([1]))


def _clipped(graph: Graph, value: str, low: Array, high: Array) -> str:
    found = graph.op("Max", value, low) if np.isfinite(low).any() else value
    return graph.op("Min", found, high) if np.isfinite(high).any() else found


def _centred(graph: Graph, model: Any) -> str:
    """As `Box.centred`."""
    width = model.high_ - model.low_
    inner = graph.op("Sub", _clipped(graph, "X", model.low_, model.high_), (model.low_ + model.high_) / 2)
    scaled = graph.op("Mul", inner, 2 / np.where(width > 0, width, 1.0))
    return _clipped(graph, scaled, np.array([-1.0]), np.array([1.0]))


def _linear(graph: Graph, value: str, coefficients: Array, intercept: Any) -> str:
    return graph.op("Add", graph.op("MatMul", value, coefficients.T), np.asarray(intercept, dtype=np.float64))


def _labelled(graph: Graph, places: str, classes: Array) -> None:
    graph.output("label", graph.op("Gather", classes, places), columns=None, like=classes)


def _most_likely(graph: Graph, model: Any, probabilities: str) -> None:
    _labelled(graph, graph.op("ArgMax", probabilities, axis=1, keepdims=0), model.classes_)
    graph.output("probabilities", probabilities, columns=len(model.classes_))


def _scored(graph: Graph, model: Any, scores: str, *, probable: bool) -> None:
    """Labels and scores of a linear classifier: one score for two classes, else one a class; probabilities where it has them."""
    columns = len(model.coef_)
    if columns == 1:
        above = graph.cast(graph.op("Greater", scores, np.array([0.0])), "INT64")
        _labelled(graph, graph.flat(above), model.classes_)
    else:
        _labelled(graph, graph.op("ArgMax", scores, axis=1, keepdims=0), model.classes_)
    graph.output("scores", scores, columns=columns)
    if probable:
        both = graph.op("Concat", graph.op("Mul", scores, np.array([0.0])), scores, axis=1) if columns == 1 else scores
        graph.output("probabilities", graph.op("Softmax", both, axis=1), columns=len(model.classes_))


def _linear_classifier(graph: Graph, model: Any) -> None:
    scores = _linear(graph, _clipped(graph, "X", model.low_, model.high_), model.coef_, model.intercept_)
    _scored(graph, model, scores, probable=hasattr(model, "predict_proba"))


def _kernel(graph: Graph, model: Any) -> None:
    """As `fourier_features`: angles in whole parts of one turn, so that they are small, and their cosines precise."""
    turns = graph.op("MatMul", _centred(graph, model), model.frequencies_.T)
    parts = graph.op("Floor", graph.op("Add", graph.op("Mul", turns, np.array([float(PARTS_OF_A_TURN)])), np.array([0.5])))
    whole = graph.op("Mul", graph.op("Floor", graph.op("Mul", parts, np.array([1 / PARTS_OF_A_TURN]))), np.array([-1.0]))
    part = graph.op(
        "Add", graph.op("Mul", parts, np.array([1 / PARTS_OF_A_TURN])), whole
    )  # of one turn: a small angle is precise
    angle = graph.op("Mul", part, np.array([2 * math.pi]))
    features = graph.op("Concat", graph.op("Cos", angle), graph.op("Sin", angle), axis=1)
    _scored(graph, model, _linear(graph, features, model.coef_, model.intercept_), probable=hasattr(model, "predict_proba"))


def _discriminant(graph: Graph, model: Any) -> None:
    scores = _linear(graph, _clipped(graph, "X", model.low_, model.high_), model.coef_, model.intercept_)
    _most_likely(graph, model, graph.op("Softmax", scores, axis=1))


def _normal_logs(graph: Graph, value: str, means: Array, variances: Array, weights: Array) -> str:
    """log(weight · density) of independent normal features, a column a group."""
    variances = np.where(weights[:, None] > 0, variances, 1.0)  # a class without weight has no density
    with np.errstate(divide="ignore"):
        constants = np.log(weights) - 0.5 * np.log(2 * math.pi * variances).sum(axis=1)
    away = graph.op("Sub", graph.op("Unsqueeze", value, np.array([1])), means)
    squares = graph.op("Mul", graph.op("Mul", away, away), -0.5 / variances)
    return graph.op("Add", graph.op("ReduceSum", squares, np.array([2]), keepdims=0), constants)


def _naive_bayes(graph: Graph, model: Any) -> None:
    numbers = graph.op("Gather", "X", model.numbers_, axis=1)
    clipped = _clipped(graph, numbers, model.low_, model.high_) if len(model.numbers_) else numbers
    found = _normal_logs(graph, clipped, model.theta_, model.var_, model.class_prior_)
    for (at, width, values), logs in zip(model.categories_, model.feature_log_prob_, strict=True):
        here = graph.op("Gather", "X", np.arange(at, at + width), axis=1)
        if width == 1 and values:
            here = graph.cast(graph.op("Equal", here, np.asarray(values, dtype=np.float64)[None]), "DOUBLE")
        found = graph.op("Add", found, graph.op("MatMul", here, logs.T))
    _most_likely(graph, model, graph.op("Softmax", found, axis=1))


def _network(graph: Graph, model: Any) -> None:
    value = _centred(graph, model)
    for layer, weights in enumerate(model.weights_):
        value = _linear(graph, value, weights[:-1].T, weights[-1])
        value = graph.op("Tanh", value) if layer < len(model.weights_) - 1 else value
    _most_likely(graph, model, graph.op("Softmax", value, axis=1))


def _trees(graph: Graph, model: Any) -> None:
    """All trees at once, a level after the other: node i's children are 2i + 1 and 2i + 2."""
    trees, nodes = model.feature_.shape
    leaves, clipped = 2 ** int(model.depth_), _clipped(graph, "X", model.low_, model.high_)
    rows = graph.op("Slice", graph.op("Shape", "X"), np.array([0]), np.array([1]))
    shape = graph.op("Concat", rows, np.array([trees]), axis=0)
    node = graph.op("Expand", np.zeros((1, 1), dtype=np.int64), shape)
    for _ in range(int(model.depth_)):
        place = graph.op("Add", node, np.arange(trees) * nodes)
        value = graph.op("GatherElements", clipped, graph.op("Gather", model.feature_.ravel(), place), axis=1)
        right = graph.op("GreaterOrEqual", value, graph.op("Gather", model.threshold_.ravel(), place))
        node = graph.op("Add", graph.op("Add", node, node), graph.op("Add", graph.cast(right, "INT64"), np.array([1])))
    leaf = graph.op("Add", node, np.arange(trees) * leaves - (leaves - 1))
    shares = graph.op("Gather", model.value_.reshape(trees * leaves, -1), leaf, axis=0)
    _most_likely(graph, model, graph.op("ReduceMean", shares, np.array([1]), keepdims=0))


def _curves(graph: Graph, model: Any) -> str:
    """The sum of a boosted model's curves: each column's bin, as `Columns.places` finds it, and what stands there."""
    low, width, found = model.low_, np.where(model.high_ > model.low_, model.high_ - model.low_, 1.0), ""
    for features, value in zip(model.columns_, model.value_, strict=True):
        here = graph.op("Gather", "X", np.array(features), axis=1)
        if len(features) == 1:
            at = features[0]
            above = graph.op("Sub", _clipped(graph, here, low[[at]], model.high_[[at]]), low[[at]])
            scaled = graph.op("Mul", graph.op("Div", above, width[[at]]), np.array([float(model.bins_)]))
            inside = graph.op("Min", graph.op("Max", scaled, np.array([0.0])), np.array([float(model.bins_ - 1)]))
            place = graph.flat(graph.cast(inside, "INT64"))
        else:  # the first feature that is 1; where none is, the place after the last
            middle = ((low + model.high_) / 2)[list(features)]
            chosen = graph.cast(graph.op("GreaterOrEqual", here, middle), "DOUBLE")
            rest = graph.op("Add", graph.op("Mul", graph.op("Slice", chosen, [0], [1], [1]), np.array([0.0])), np.array([0.5]))
            place = graph.op("ArgMax", graph.op("Concat", chosen, rest, axis=1), axis=1, keepdims=0)
        gained = graph.op("Gather", value, place, axis=0)
        found = graph.op("Add", found or model.base_[None, :], gained)
    return found


def _boosted_classes(graph: Graph, model: Any) -> None:
    scores = _curves(graph, model)
    if len(model.base_) == 1:
        half = graph.op("Mul", scores, np.array([0.5]))
        scores = graph.op("Concat", graph.op("Neg", half), half, axis=1)
    _most_likely(graph, model, graph.op("Softmax", scores, axis=1))


def _boosted_numbers(graph: Graph, model: Any) -> None:
    low, high = model.bounds_y_
    part = _clipped(graph, graph.flat(_curves(graph, model)), np.array([-1.0]), np.array([1.0]))
    part = graph.op("Mul", graph.op("Add", part, np.array([1.0])), np.array([0.5]))
    rest = graph.op("Sub", np.array([1.0]), part)
    number = graph.op("Add", graph.op("Mul", rest, np.array([float(low)])), graph.op("Mul", part, np.array([float(high)])))
    graph.output("prediction", number, columns=None)


def _regression(graph: Graph, model: Any) -> None:
    found = _linear(graph, _clipped(graph, "X", model.low_, model.high_), model.coef_[None, :], model.intercept_)
    counts = hasattr(model, "log_rates_")
    low, high = model.log_rates_ if counts else model.bounds_y_
    found = graph.flat(_clipped(graph, found, np.array([low]), np.array([high])))
    graph.output("prediction", graph.op("Exp", found) if counts else found, columns=None)


def _centres(graph: Graph, model: Any) -> None:
    clipped = _clipped(graph, "X", model.low_, model.high_)
    away = graph.op("Sub", graph.op("Unsqueeze", clipped, np.array([1])), model.cluster_centers_)
    distances = graph.op("Sqrt", graph.op("ReduceSum", graph.op("Mul", away, away), np.array([2]), keepdims=0))
    graph.output("label", graph.op("ArgMin", distances, axis=1, keepdims=0), columns=None, like=0)
    graph.output("distances", distances, columns=len(model.cluster_centers_))


def _mixture(graph: Graph, model: Any) -> None:
    clipped = _clipped(graph, "X", model.low_, model.high_)
    logs = _normal_logs(graph, clipped, model.means_, model.covariances_, model.weights_)
    graph.output("label", graph.op("ArgMax", logs, axis=1, keepdims=0), columns=None, like=0)
    graph.output("probabilities", graph.op("Softmax", logs, axis=1), columns=len(model.weights_))
    graph.output("log_density", graph.op("ReduceLogSumExp", logs, np.array([1]), keepdims=0), columns=None)


def _components(graph: Graph, model: Any) -> None:
    away = graph.op("Sub", _clipped(graph, "X", model.low_, model.high_), model.mean_)
    graph.output("features", graph.op("MatMul", away, model.components_.T), columns=len(model.components_))


def _bounded(graph: Graph, model: Any) -> None:
    width = model.high_ - model.low_
    unit = graph.op("Sub", _clipped(graph, "X", model.low_, model.high_), model.low_)
    scaled = graph.op("Mul", unit, (model.to_ - model.from_) / np.where(width > 0, width, 1.0))
    graph.output("features", graph.op("Add", scaled, np.array([float(model.from_)])), columns=len(width))


def _standard(graph: Graph, model: Any) -> None:
    found = _clipped(graph, "X", model.low_, model.high_) if model.private else "X"
    found = graph.op("Sub", found, model.mean_ if model.with_mean else np.zeros_like(model.mean_))
    found = graph.op("Div", found, model.scale_ if model.with_std else np.ones_like(model.scale_))
    graph.output("features", found, columns=len(model.mean_))


def _clipper(graph: Graph, model: Any) -> None:
    graph.output("features", _clipped(graph, "X", model.low_, model.high_), columns=len(model.low_))


def _of(draw: Callable[[Graph, Any], None], names: Sequence[str]) -> Mapping[str, Callable[[Graph, Any], None]]:
    return dict.fromkeys(names, draw)


GRAPHS: Mapping[str, Callable[[Graph, Any], None]] = {
    **_of(_naive_bayes, ["GaussianNB", "CategoricalNB", "MixedNB"]),
    **_of(_linear_classifier, ["LogisticRegression", "LinearSVC"]),
    **_of(_kernel, ["KernelClassifier"]),
    **_of(_discriminant, ["LinearDiscriminantAnalysis"]),
    **_of(_trees, ["DecisionTreeClassifier", "RandomForestClassifier"]),
    **_of(_boosted_classes, ["GradientBoostingClassifier"]),
    **_of(_boosted_numbers, ["GradientBoostingRegressor"]),
    **_of(_network, ["NeuralClassifier"]),
    **_of(_regression, ["LinearRegression", "Ridge", "PoissonRegressor"]),
    **_of(_centres, ["KMeans"]),
    **_of(_mixture, ["GaussianMixture"]),
    **_of(_components, ["PCA"]),
    **_of(_bounded, ["BoundedScaler"]),
    **_of(_standard, ["StandardScaler"]),
    **_of(_clipper, ["QuantileClipper"]),
}
"""How each model is drawn, by its name in the catalogue. An input X has a row a person and a column a feature, of doubles."""
