"""The one door between private rows and everybody else: measure, run, release.

    question.py     what can be asked: counts, sums, means, by keys, under a condition
    shape.py        which integers must be noised for it, and by which formulas it is read from them
    blocks.py       groups of integers that share noise, with their sensitivity and proof
    grid.py         the groups of the answer; threshold.py: which undeclared ones may show
    spend.py        what a spend means under a budget, and how it is shared out
    plan.py         all of the above with noise, cost and expected error, before a row is read
    door.py         reserve, aggregate, noise, settle
    answer.py       exact integers in, noisy ones out, and their release
    release.py      the table with its errors, cost and provenance; frames.py and chart.py show it
    uncertainty.py  how far a sum of noises may lie from nothing
    store.py        readings in the ledger and back
    run.py          methods that need rows

Lives here: everything that touches exact values, and nothing that knows of SQL, models or pages. Those stand on the floors
above and ask questions.
"""

from cloister.session.door import Door
from cloister.session.frames import Frame, Series, text_table
from cloister.session.history import History, Purchase
from cloister.session.plan import Part, Plan
from cloister.session.question import Count, Mean, Persons, Question, Statistic, Sum, histogram, marginal, unknown_column
from cloister.session.release import Provenance, Release
from cloister.session.run import Outcome, RowMethod, RunPlan
from cloister.session.spend import Spending

__all__ = [
    "Count",
    "Door",
    "Frame",
    "History",
    "Mean",
    "Outcome",
    "Part",
    "Persons",
    "Plan",
    "Provenance",
    "Purchase",
    "Question",
    "Release",
    "RowMethod",
    "RunPlan",
    "Series",
    "Spending",
    "Statistic",
    "Sum",
    "histogram",
    "marginal",
    "text_table",
    "unknown_column",
]
