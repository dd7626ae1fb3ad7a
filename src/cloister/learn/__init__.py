"""Models with a guarantee: scikit-learn estimators whose every release is charged.

    frame/          what every model has: parameters, bounds, encodings, noisy sums, learning from tables, cards, portable text
    linear_models/  linear, logistic and Poisson regression, support vector and kernel machines
    bayesian/       naive Bayes and discriminants
    ensembles/      trees, forests, boosting
    clustering/     k-means and mixtures
    decomposition/  principal components
    networks/       a small neural network, and the accountant of its noise (usable alone)
    assessment/     how good a model is, found out privately; choosing a setting; the price of privacy

`frame/catalogue.py` lists all models. Lives here: whatever learns from rows and promises something. What a model is attacked with
lives in `cloister.attacks`; pages and jobs live in the hub.

>>> from cloister.learn import GaussianNB
>>> model = GaussianNB(epsilon=1, bounds=(0, 1)).fit([[0.1], [0.9]] * 500, [0, 1] * 500)
>>> model.predict([[0.0], [1.0]]).tolist(), str(model.guarantee_)
([0, 1], 'ε = 1')
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.learn.assessment.curve import Curve as Curve
    from cloister.learn.assessment.curve import price_of_privacy as price_of_privacy
    from cloister.learn.assessment.evaluation import accuracy as accuracy
    from cloister.learn.assessment.evaluation import confusion_matrix as confusion_matrix
    from cloister.learn.assessment.evaluation import fit_and_score as fit_and_score
    from cloister.learn.assessment.evaluation import mean_squared_error as mean_squared_error
    from cloister.learn.assessment.evaluation import r2_score as r2_score
    from cloister.learn.assessment.evaluation import reliability as reliability
    from cloister.learn.assessment.evaluation import split as split
    from cloister.learn.assessment.judged_tables import evaluate_table as evaluate_table
    from cloister.learn.assessment.judged_tables import fit_and_score_table as fit_and_score_table
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
    from cloister.learn.frame.catalogue import METHODS as METHODS
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
    from cloister.learn.linear_models.poisson import PoissonRegressor as PoissonRegressor
    from cloister.learn.linear_models.svm import LinearSVC as LinearSVC
    from cloister.learn.networks.accountant import epsilon_for as epsilon_for
    from cloister.learn.networks.accountant import noise_for as noise_for
    from cloister.learn.networks.neural import NeuralClassifier as NeuralClassifier

__all__, __getattr__, __dir__ = Lazily(__name__, extras={"sklearn": "learn", "scipy": "learn"}).public
