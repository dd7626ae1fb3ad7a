"""Metrics: how much of a table a recoding loses."""

from cloister.anonymize.metrics.base import Metric as Metric
from cloister.anonymize.metrics.information import Ambiguity as Ambiguity
from cloister.anonymize.metrics.information import Divergence as Divergence
from cloister.anonymize.metrics.information import Entropy as Entropy
from cloister.anonymize.metrics.named import METRICS as METRICS
from cloister.anonymize.metrics.named import AverageClassSize as AverageClassSize
from cloister.anonymize.metrics.named import Discernibility as Discernibility
from cloister.anonymize.metrics.named import metric_of as metric_of
from cloister.anonymize.metrics.shares import CertaintyPenalty as CertaintyPenalty
from cloister.anonymize.metrics.shares import Loss as Loss
from cloister.anonymize.metrics.shares import Precision as Precision
from cloister.anonymize.metrics.task import TaskAccuracy as TaskAccuracy
from cloister.anonymize.metrics.task import task_accuracy as task_accuracy
