"""Texts of models that come from below the hub, or are kept in the database, and are translated where they are shown."""

from __future__ import annotations

from cloister.hub.services.learning.expected import LOST
from cloister.hub.services.learning.membership import LINES
from cloister.hub.web.languages import N_

SHOWN = (
    # titles of methods
    N_("Gaussian naive Bayes"),
    N_("Naive Bayes for categories"),
    N_("Naive Bayes for categories and numbers"),
    N_("Logistic regression"),
    N_("Linear support vector machine"),
    N_("Kernel machine by random features"),
    N_("Linear discriminant analysis"),
    N_("Decision tree"),
    N_("Random forest"),
    N_("Gradient boosting"),
    N_("Gradient boosting"),
    N_("Gradient boosting for numbers"),
    N_("Small neural network"),
    N_("Linear regression"),
    N_("Ridge regression"),
    N_("Gradient boosting for numbers"),
    N_("k-means"),
    N_("Gaussian mixture"),
    N_("Principal components"),
    N_("Scaling by noisy means and deviations"),
    N_("Clipping at noisy quantiles"),
    # sections and lines of a card
    N_("Charges by statistic"),
    N_("Results"),
    N_("Declared bounds"),
    N_("Parameters"),
    N_("data set"),
    N_("date"),
    N_("guarantee"),
    N_("target"),
    *LINES,
    *LOST.values(),
    # stages of a job
    N_("learning"),
    N_("keeping the model"),
)
"""Each is looked up by its English text."""
