"""Metrics by name."""

from __future__ import annotations

from collections.abc import Mapping

from cloister.anonymize.metrics.base import Metric
from cloister.anonymize.metrics.classes import AverageClassSize, Discernibility
from cloister.anonymize.metrics.information import Ambiguity, Divergence, Entropy
from cloister.anonymize.metrics.shares import CertaintyPenalty, Loss, Precision
from cloister.errors import InvalidParameter

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Loss(),
        Discernibility(),
        Entropy(),
        AverageClassSize(),
        CertaintyPenalty(),
        Precision(),
        Ambiguity(),
        Divergence(),
    )
}
"""Every metric by its name."""

_SHORT = {
    "ncp": "certainty penalty",
    "dm": "discernibility",
    "kl": "divergence",
    "height": "precision",
    "aecs": "average class size",
}


def metric_of(asked: str | Metric) -> Metric:
    """A metric by its name; a metric is handed back as it is.

    >>> metric_of("loss")
    Loss()
    >>> metric_of("NCP").name, metric_of("average_class_size").name
    ('certainty penalty', 'average class size')
    """
    if isinstance(asked, Metric):
        return asked
    name = str(asked).strip().lower().replace("_", " ").replace("-", " ")
    found = METRICS.get(_SHORT.get(name, name))
    if found is None:
        raise InvalidParameter(
            f"metric={asked!r} is invalid",
            why="it is not one of " + ", ".join(map(repr, METRICS)),
            instead='metric="loss"',
        )
    return found
