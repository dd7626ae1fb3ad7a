"""How much of the spread of rows a model without a target keeps: what its groups or its directions say of where a row is.

NOT PRIVATE: the share is exact. It is for public or synthetic rows, or for the owner's own eyes, as a curve is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel


def captures(model: PrivateModel) -> bool:
    """Whether a model says where a row is: by the middle of its group, or by its place along a few directions.

    >>> from cloister.learn import KMeans, StandardScaler
    >>> captures(KMeans()), captures(StandardScaler())
    (True, False)
    """
    return not {"cluster_centers_", "components_", "covariances_"}.isdisjoint(type(model).learned_names)


def captured(model: Any, X: Any) -> float:
    """1 − (squared distances of rows from where the model says that they are) / (those from the rows' own mean).

    1 is all, 0 what is known without a model; less than 0 is worse than that. For k-means it is 1 − inertia/total, for principal
    components the explained variance; where all components are kept, all of it is captured by any of them, and the first alone
    counts.

    >>> from cloister.learn import KMeans
    >>> rows = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> round(captured(KMeans(2, privacy=None).fit(rows), rows), 2)
    0.99
    """
    rows = np.asarray(X, dtype=np.float64)
    total = float(((rows - rows.mean(axis=0)) ** 2).sum()) if len(rows) else 0.0
    return 1 - float(distances(model, rows).sum()) / total if total else 0.0


def distances(model: Any, X: Any) -> npt.NDArray[np.float64]:
    """The squared distance of each row from where the model says that it is."""
    rows = np.asarray(X, dtype=np.float64)
    if hasattr(model, "components_"):
        directions = model.components_ if len(model.components_) < rows.shape[1] else model.components_[:1]
        said = model.mean_ + (rows - model.mean_) @ directions.T @ directions
    else:
        middles = model.cluster_centers_ if hasattr(model, "cluster_centers_") else model.means_
        said = middles[model.predict(rows)] if len(rows) else rows
    return np.asarray(((rows - said) ** 2).sum(axis=1))
