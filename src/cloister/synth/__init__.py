"""Synthetic tables: a few noisy marginals are measured once, a model is fitted to them, and rows are drawn from the model.

    states.py     the values of each column as a few states: categories, bins of numbers and days, missing
    pieces.py     runs of values inside a state, and how likely each is
    discretizing.py  bins whose cuts are bought: long tails, categories of many values, days by weekday and month
    measuring.py  which marginals are measured, at which noise, with the proof; the number of rows that they agree on
    choosing.py   marginals that are chosen by looking at the rows, at a price: MST, AIM, MWEM, PrivBayes, with the proof
    earlier.py    answers that somebody was given before, as evidence that costs nothing again, with the proof
    mixture.py    a mixture of products fitted to noisy marginals, and to redrawn noise; independent columns
    rules.py      what every row obeys: real rows mended before they are counted, empty cells, drawn rows; rule_texts.py reads it
    drawing.py    rows from it, stratified, under conditions
    model.py      what is published: sample, answer, cost, save and load
    answering.py  SQL and questions to the model; cutting.py: what they read of each column; answer.py: the table that comes back
    released.py   what measured tables say of a question: margins and sure bounds
    gaussians.py  microaggregation: a noisy Gaussian for each public group
    k_anonymous.py  rows from classes of at least k: not private, by the marked door
    from_reports.py  rows from local reports
    pooling.py    models of several populations as one
    related.py    two tables of one population: people, and what each of them has several of
    report.py     what may be said of a model: text, data, a page
    comparing.py  what its owner alone may know of a model: real against synthetic rows, and attacks
    linear.py     of these, regressions and principal components
    fitting.py    from a session's table, or from a frame with a budget of its own, to a model

Lives here: what turns a release of counts into rows. May not live here: anything that reads a row, an engine, or noise that
protects somebody: the door measures, and everything after it is post-processing. What compares a model with its rows, for their
owner, gives nothing back to it.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.synth.fitting import fit as fit
    from cloister.synth.fitting import fit_frame as fit_frame
    from cloister.synth.from_reports import fit_reports as fit_reports
    from cloister.synth.gaussians import GaussianModel as GaussianModel
    from cloister.synth.gaussians import fit_gaussians as fit_gaussians
    from cloister.synth.k_anonymous import KAnonymousModel as KAnonymousModel
    from cloister.synth.k_anonymous import fit_k_anonymous as fit_k_anonymous
    from cloister.synth.model import SyntheticModel as SyntheticModel
    from cloister.synth.model import load as load
    from cloister.synth.pooling import PooledModel as PooledModel
    from cloister.synth.pooling import pooled as pooled
    from cloister.synth.related import RelatedModel as RelatedModel
    from cloister.synth.related import fit_related as fit_related
    from cloister.synth.states import Calendar as Calendar
    from cloister.synth.states import QuantileBins as QuantileBins

__all__, __getattr__, __dir__ = Lazily(__name__).public
