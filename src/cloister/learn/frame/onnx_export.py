"""Models for other programs: as ONNX, which a page, a phone or a database can run without Python.

What is exported is what was released, and what was declared. The promise travels with it: in the model's metadata.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter, MissingDependency
from cloister.installed import install
from cloister.learn.frame.catalogue import name_of
from cloister.learn.frame.onnx_graphs import GRAPHS, Graph
from cloister.learn.frame.portable import plain, spent_of, write_guarantee

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel

_OPSET, _IR = 18, 8
"""Read by all runtimes since 2023."""
_NEEDED = {"onnx", "google", "ml_dtypes"}


def to_onnx(model: PrivateModel, path: str | Path | None = None) -> bytes:
    """A fitted model as ONNX; with `path`, it is written there, too.

    No guarantee of its own: it is made of the learned attributes, so it is post-processing of what the model released, and no
    row is in it. Metadata say "guarantee", "spent", "private" ("yes", or "no" where the model was learnt without noise, which
    `doc_string` says as well), "features", "bounds" and "marked" (a generator made for tests).

    The input "X" holds doubles, a row a person, a column a feature in the model's order. Outputs of classifiers: "label" and
    "probabilities" or "scores"; of regressions "prediction"; of groups "label", and "distances" or "probabilities" and
    "log_density"; of transformers "features". Needs the extra `[onnx]`.

    >>> import pytest; onnx = pytest.importorskip("onnx")
    >>> from cloister.learn import BoundedScaler
    >>> found = onnx.load_from_string(to_onnx(BoundedScaler(bounds=(0, 10)).fit([[5.0]])))
    >>> {line.key: line.value for line in found.metadata_props}["guarantee"]
    'ε = 0'
    """
    from sklearn.utils.validation import check_is_fitted

    name = name_of(model)
    if name not in GRAPHS:
        raise InvalidParameter(
            f"{name} was not exported",
            why="this library draws no ONNX graph of it",
            instead="model.to_json(), and cloister.learn.load",
        )
    check_is_fitted(model)
    onnx = _package()
    graph = Graph(onnx=onnx)
    GRAPHS[name](graph, model)
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            name,
            [onnx.helper.make_tensor_value_info("X", onnx.TensorProto.DOUBLE, ["persons", int(model.n_features_in_)])],
            [
                onnx.helper.make_tensor_value_info(
                    output, graph.kinds[output], ["persons"] if columns is None else ["persons", columns]
                )
                for output, columns in graph.columns.items()
            ],
            initializer=graph.constants,
        ),
        producer_name="cloister",
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        doc_string=model.report(),
    )
    onnx.helper.set_model_props(made, _about(model))
    onnx.checker.check_model(made, full_check=True)
    written = bytes(made.SerializeToString(deterministic=True))
    if path is not None:
        try:
            Path(path).write_bytes(written)
        except OSError:
            raise InvalidParameter(
                f"The file {str(path)!r} is invalid", why="it cannot be written", instead='to_onnx(model, "model.onnx")'
            ) from None
    return written


def _about(model: Any) -> dict[str, str]:
    """What is to be known of the model wherever it goes, as texts."""
    names = getattr(model, "feature_names_in_", [f"feature {place}" for place in range(model.n_features_in_)])
    promise = model.guarantee_
    about = {
        "model": name_of(model),
        "private": "no" if promise is None else "yes",
        "guarantee": "NOT PRIVATE: learnt without noise" if promise is None else str(promise),
        "guarantee_exact": json.dumps(write_guarantee(promise), ensure_ascii=False),
        "spent": json.dumps(spent_of(model.spent_), ensure_ascii=False),
        "marked": "yes" if model.marked_ else "no",
        "features": json.dumps([str(name) for name in names], ensure_ascii=False),
    }
    if promise is not None:
        about["bounds"] = json.dumps(plain(model.bounds), ensure_ascii=False)
    return about


def _package() -> Any:
    try:
        return import_module("onnx")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        raise MissingDependency(
            "The model was not exported", why="the package onnx is not installed", instead=install("onnx")
        ) from None
