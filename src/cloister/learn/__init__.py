"""Models with a guarantee: scikit-learn estimators whose every release is charged.

The frame, which every model stands on::

    base.py         checks, an allowance, learned values; bounds.py: declared bounds; targets.py: declared classes
    allowance.py    what one fit may spend, and on what it spent it
    encoding.py     from declared columns to features; from_tables.py: learning from a table of a session
    portable.py     models as plain JSON; catalogue.py: which models there are
    onnx_export.py  models for other programs: onnx_graphs.py

Noise for what one person may change: vectors.py and ball.py (a bounded length), cube.py (a bounded size of each number).
The models, and what each is made of::

    naive_bayes.py      moments.py (sums by class), class_tables.py (by a table's engine), bayes.py, categories.py, margins.py
    linear.py           regression_rows.py, regression_tables.py, products.py, least_squares.py, wishart.py
    discriminant.py     the same sums, and one covariance
    logistic.py, svm.py linear_classes.py (which method), prepared.py (scaled and cut rows), losses.py, minimum.py;
                        where the noise goes: objective.py, descent.py, output.py, centroids.py
    kernel.py           random_features.py, and what the two above are made of
    kmeans.py           place.py, starts.py, lloyd.py
    mixture.py          expectations.py; starts from kmeans.py
    pca.py              second_moments.py, subspaces.py, power.py, covariance_tables.py
    trees.py            splits.py
    boosting.py         histograms.py, boosting_losses.py, boosting_plan.py, boosting_rounds.py
    neural.py           gradients.py, accountant.py (usable alone)
    scaling.py          preparation that does not leak

Judging them: evaluation.py (scores with a margin) on scores.py, judging.py and judged_tables.py; selection.py (choosing a
hyper-parameter) on stopping.py. Telling of them: card.py, and curve.py, the price of privacy.

Lives here: whatever learns from rows and promises something. What a model is attacked with lives in `cloister.attacks`; pages and
jobs live in the hub.

>>> from cloister.learn import GaussianNB
>>> model = GaussianNB(epsilon=1, bounds=(0, 1)).fit([[0.1], [0.9]] * 500, [0, 1] * 500)
>>> model.predict([[0.0], [1.0]]).tolist(), str(model.guarantee_)
([0, 1], 'ε = 1')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.lazily import Lazily
from cloister.learn.frame.catalogue import METHODS

if TYPE_CHECKING:
    from cloister.learn.assessment.curve import Curve as Curve
    from cloister.learn.assessment.curve import price_of_privacy as price_of_privacy
    from cloister.learn.assessment.evaluation import accuracy as accuracy
    from cloister.learn.assessment.evaluation import confusion_matrix as confusion_matrix
    from cloister.learn.assessment.evaluation import evaluate_table as evaluate_table
    from cloister.learn.assessment.evaluation import fit_and_score as fit_and_score
    from cloister.learn.assessment.evaluation import fit_and_score_table as fit_and_score_table
    from cloister.learn.assessment.evaluation import mean_squared_error as mean_squared_error
    from cloister.learn.assessment.evaluation import r2_score as r2_score
    from cloister.learn.assessment.evaluation import split as split
    from cloister.learn.assessment.selection import PrivateSearch as PrivateSearch
    from cloister.learn.assessment.selection import cross_validate as cross_validate
    from cloister.learn.bayesian.discriminant import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
    from cloister.learn.bayesian.naive_bayes import CategoricalNB as CategoricalNB
    from cloister.learn.bayesian.naive_bayes import GaussianNB as GaussianNB
    from cloister.learn.bayesian.naive_bayes import MixedNB as MixedNB
    from cloister.learn.clustering.kmeans import KMeans as KMeans
    from cloister.learn.clustering.mixture import GaussianMixture as GaussianMixture
    from cloister.learn.decomposition.pca import PCA as PCA
    from cloister.learn.ensembles.boosting import GradientBoostingClassifier as GradientBoostingClassifier
    from cloister.learn.ensembles.boosting import GradientBoostingRegressor as GradientBoostingRegressor
    from cloister.learn.ensembles.trees import DecisionTreeClassifier as DecisionTreeClassifier
    from cloister.learn.ensembles.trees import RandomForestClassifier as RandomForestClassifier
    from cloister.learn.frame.card import Card as Card
    from cloister.learn.frame.encoding import Encoder as Encoder
    from cloister.learn.frame.onnx_export import to_onnx as to_onnx
    from cloister.learn.frame.portable import load as load
    from cloister.learn.frame.scaling import BoundedScaler as BoundedScaler
    from cloister.learn.frame.scaling import QuantileClipper as QuantileClipper
    from cloister.learn.frame.scaling import StandardScaler as StandardScaler
    from cloister.learn.linear_models.kernel import KernelClassifier as KernelClassifier
    from cloister.learn.linear_models.linear import LinearRegression as LinearRegression
    from cloister.learn.linear_models.linear import Ridge as Ridge
    from cloister.learn.linear_models.logistic import LogisticRegression as LogisticRegression
    from cloister.learn.linear_models.svm import LinearSVC as LinearSVC
    from cloister.learn.networks.accountant import epsilon_for as epsilon_for
    from cloister.learn.networks.accountant import noise_for as noise_for
    from cloister.learn.networks.neural import NeuralClassifier as NeuralClassifier

_HOMES = {
    ".networks.accountant": "epsilon_for noise_for",
    ".frame.card": "Card",
    ".frame.catalogue": "METHODS",
    ".assessment.curve": "Curve price_of_privacy",
    ".frame.encoding": "Encoder",
    ".assessment.evaluation": """accuracy confusion_matrix evaluate_table fit_and_score fit_and_score_table mean_squared_error
        r2_score split""",
    ".frame.onnx_export": "to_onnx",
    ".frame.portable": "load",
    ".assessment.selection": "PrivateSearch cross_validate",
}
_lazily = Lazily(__name__, _HOMES, extras={"sklearn": "learn", "scipy": "learn"})
_lazily.homes.update({name: method.module for name, method in METHODS.items()})

__all__ = _lazily.all
__getattr__ = _lazily.get
__dir__ = _lazily.dir
