"""Learning from local reports: models of people who never told anybody their data.

    naive_bayes.py   discrete features: one or a few randomised (value, class) cells a person
    gaussian.py      continuous ones: a vector that hides the class; bins, for the discrete one
    regression.py    linear regression from perturbed products, logistic regression from perturbed gradients

Lives here: what a person's machine makes of a record, and how a model is made of the reports. Models are fitted with public
facts and reports alone, so whatever is done after `aggregate` is post-processing.
"""

from cloister.local.learning.gaussian import LocalGaussianNB, equal_frequency, equal_width, in_bins
from cloister.local.learning.naive_bayes import LocalNaiveBayes, NaiveBayesModel
from cloister.local.learning.regression import LinearModel, LocalLinearRegression, LocalLogisticRegression

__all__ = [
    "LinearModel",
    "LocalGaussianNB",
    "LocalLinearRegression",
    "LocalLogisticRegression",
    "LocalNaiveBayes",
    "NaiveBayesModel",
    "equal_frequency",
    "equal_width",
    "in_bins",
]
