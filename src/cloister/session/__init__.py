"""The one door between private rows and everybody else: measure, run, release.

    question.py     what can be asked: counts, sums, means, moments, quantiles, by keys, under a condition; arithmetic.py on them
    shape.py        which integers must be noised for it, and by which formulas it is read from them; builder.py: who shares what
    blocks.py       groups of integers that share noise, with their sensitivity and proof; moments.py for squares and products
    leaves.py       hierarchies over the values of a column; zoom.py, zoomed.py: one quantile by a choice and counts around it
    formulas.py     counts, sums and means from noisy integers; moment_formulas.py, quantiles.py and combined.py: all others
    choice.py       Laplace or Gaussian noise
    grid.py         the groups of the answer; threshold.py: which undeclared ones may show
    spend.py        what a spend means under a budget, and how it is shared out
    plan.py         all of the above with noise, cost and expected error, before a row is read
    measurer.py     the interface of it, by which all rooms above take a session
    door.py         what can be asked; asker.py: who asks, what they owe; buying.py: reserve, aggregate, noise, settle
    share.py        a bound over several measurements
    house.py        what many sessions share: tables that come and go; stock.py: their prepared rows; kin.py: whose people
    view.py         what one person sees of it; touched.py: which columns a question reads
    abilities.py    what an engine can't answer, refused by name
    answer.py       what an engine is asked for, and the release of what it answers
    release.py      the table with its errors, cost and provenance; frames.py and chart.py show it
    wire.py         a release as text and back; wire_checks.py: what must hold of it; summary.py: a plan as plain data
    uncertainty.py  how far a sum of noises may lie from nothing; linearised.py: a curved function of several
    expectation.py  the error of what depends on private sizes, said in advance
    store.py        readings in the ledger and back
    registry.py     the tables of one moment, their populations and versions; declared.py, narrowing.py
    history.py      what was bought before; refinement.py: what follows from it
    within.py       the least spend for a margin; afford.py: the margins of many spends
    limits.py       how long the engine may work; rehearsal.py: made-up rows to write a script on
    sheets.py       several releases as one table
    run.py          methods that need rows; running.py hands them over

Lives here: everything that touches exact values, and nothing that knows of SQL, models or pages. Those stand on the floors
above and ask questions.
"""

from cloister.session.door import Door
from cloister.session.execution.history import History, Purchase
from cloister.session.execution.run import Outcome, RowMethod, RunPlan
from cloister.session.measurer import Delegate, Measurer
from cloister.session.planning.afford import Affordable
from cloister.session.planning.plan import Part, Plan
from cloister.session.questions.arithmetic import Arithmetic, Constant, Named, Operation
from cloister.session.questions.question import (
    Combined,
    Correlation,
    Count,
    Covariance,
    Distinct,
    Largest,
    Mean,
    Mode,
    Persons,
    Quantile,
    Question,
    Regression,
    Smallest,
    Statistic,
    Sum,
    Variance,
    histogram,
    marginal,
    unknown_column,
)
from cloister.session.questions.spend import Spending
from cloister.session.questions.touched import Touched
from cloister.session.releases.frames import Frame, Series, text_table
from cloister.session.releases.release import Provenance, Release
from cloister.session.state.row_access import RowAccess

__all__ = [
    "Affordable",
    "Arithmetic",
    "Combined",
    "Constant",
    "Correlation",
    "Count",
    "Covariance",
    "Delegate",
    "Distinct",
    "Door",
    "Frame",
    "History",
    "Largest",
    "Mean",
    "Measurer",
    "Mode",
    "Named",
    "Operation",
    "Outcome",
    "Part",
    "Persons",
    "Plan",
    "Provenance",
    "Purchase",
    "Quantile",
    "Question",
    "Regression",
    "Release",
    "RowAccess",
    "RowMethod",
    "RunPlan",
    "Series",
    "Smallest",
    "Spending",
    "Statistic",
    "Sum",
    "Touched",
    "Variance",
    "histogram",
    "marginal",
    "text_table",
    "unknown_column",
]
