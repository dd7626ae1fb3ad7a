"""The one door between private rows and everybody else: measure, run, release.

    door.py      what can be asked; measurer.py: the interface of it, by which all rooms above take a session
    analyst.py   who asks, within which bounds, and what they owe; share.py: a bound over several measurements
    questions/   what can be asked: statistics by keys, under a condition; what they touch, and what a spend means
    planning/    which integers must be noised for it, with sensitivity and proof; the noise, the cost, the expected error
    workloads/   several questions about the same rows, measured together
    execution/   reserve, aggregate, noise, settle; what was bought before, and what follows from it; methods that need rows
    state/       what sessions share: tables that come and go, their prepared rows, whose people they hold, who sees what
    releases/    what leaves: tables with margins, and how these are found; as frames, pictures, text and back
    examples.py  a door to try all of it on

A question goes down this list. Lives here: everything that touches exact values, and nothing that knows of SQL, models or pages.
Those stand on the floors above and ask questions.
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
from cloister.session.state.table_registry import RowAccess

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
