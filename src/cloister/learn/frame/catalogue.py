"""Which models there are: what each is for, where it lives, and how it learns from a table. Pages and the loader read it."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

Task: TypeAlias = Literal["classes", "numbers", "groups", "directions"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """One model."""

    name: str
    module: str
    title: str
    task: Task
    pure: bool = True
    """Whether a promise without a δ will do."""
    approximate: bool = True
    """Whether a δ is of any use."""
    statistics: bool = False
    """Whether it learns from sums that the table's engine makes; else rows are read into memory."""


def _of(name: str, module: str, title: str, task: Task, **more: bool) -> Method:
    return Method(name=name, module=f"cloister.learn.{module}", title=title, task=task, **more)


METHODS = {
    method.name: method
    for method in (
        _of("GaussianNB", "bayesian.naive_bayes", "Gaussian naive Bayes", "classes", statistics=True),
        _of("CategoricalNB", "bayesian.naive_bayes", "Naive Bayes for categories", "classes", statistics=True),
        _of("MixedNB", "bayesian.naive_bayes", "Naive Bayes for categories and numbers", "classes", statistics=True),
        _of("LogisticRegression", "linear_models.logistic", "Logistic regression", "classes"),
        _of("LinearSVC", "linear_models.svm", "Linear support vector machine", "classes"),
        _of("KernelClassifier", "linear_models.kernel", "Kernel machine by random features", "classes"),
        _of("LinearDiscriminantAnalysis", "bayesian.discriminant", "Linear discriminant analysis", "classes", statistics=True),
        _of("DecisionTreeClassifier", "ensembles.trees", "Decision tree", "classes", approximate=False),
        _of("RandomForestClassifier", "ensembles.trees", "Random forest", "classes", approximate=False),
        _of("GradientBoostingClassifier", "ensembles.boosting", "Gradient boosting", "classes"),
        _of("NeuralClassifier", "networks.neural", "Small neural network", "classes", pure=False),
        _of("LinearRegression", "linear_models.linear", "Linear regression", "numbers", statistics=True),
        _of("Ridge", "linear_models.linear", "Ridge regression", "numbers", statistics=True),
        _of("PoissonRegressor", "linear_models.poisson", "Poisson regression", "numbers"),
        _of("GradientBoostingRegressor", "ensembles.boosting", "Gradient boosting for numbers", "numbers"),
        _of("KMeans", "clustering.kmeans", "k-means", "groups", statistics=True),
        _of("GaussianMixture", "clustering.mixture", "Gaussian mixture", "groups"),
        _of("PCA", "decomposition.pca", "Principal components", "directions", statistics=True),
        _of("BoundedScaler", "frame.scaling", "Scaling by declared bounds", "directions"),
        _of("StandardScaler", "frame.scaling", "Scaling by noisy means and deviations", "directions"),
        _of("QuantileClipper", "frame.scaling", "Clipping at noisy quantiles", "directions"),
    )
}
"""All of them, by the names that stored models, plans and orders have: those do not change, whatever the classes are called."""


def name_of(model: object) -> str:
    """The name under which a model is stored: the one that its own class declares. A class that declares none, such as somebody's
    own heir of one of ours, goes by what it is called.

    >>> from cloister.learn import PCA
    >>> name_of(PCA())
    'PCA'
    """
    kind = type(model)
    return str(vars(kind).get("_stored", kind.__name__))


def class_of(name: str) -> Any:
    """The class of the models that are stored under a name.

    >>> class_of("PCA").__module__
    'cloister.learn.decomposition.pca'
    """
    found = vars(import_module(METHODS[name].module)).values()
    return next(each for each in found if isinstance(each, type) and vars(each).get("_stored") == name)
