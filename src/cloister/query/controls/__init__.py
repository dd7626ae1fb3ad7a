"""Inference controls for statistical databases: exact answers for trusted insiders, behind the second, marked door.

Not differential privacy, and every answer, event and page says so.

    policy.py        Controls: what an owner asks of every answer
    door.py          ControlledSession: the questions, and the way of an answer
    asked.py         what is asked, and what the declarations refuse of it
    inside.py        behind the door: sets and their size, checks, numbers; recoding, rounding, sampling, perturbation and
                     substitution change them
    records.py       the rows in an order of their own, and the sets that conditions choose
    cells.py         the groups of a table
    admission.py     what may be answered after what was answered; overlap with earlier sets
    history.py       the answered sets, sealed and durable
    sums.py          the exact audit of sums; witness.py proves what it finds
    network.py       a table with totals as a network; suppression.py and rounding.py rest on it
    keyed.py         chance that follows from the records concerned
    answer.py        what leaves; marking.py: what it says of itself
"""

from cloister.query.controls.admission import Refusal
from cloister.query.controls.answer import TOTAL, ControlledAnswer
from cloister.query.controls.door import ControlledSession, OwnerReport
from cloister.query.controls.marking import NOT_PRIVATE
from cloister.query.controls.perturbation import InputPerturbation, OutputPerturbation
from cloister.query.controls.policy import Controls, Substitution
from cloister.query.controls.recoding import Range
from cloister.query.controls.rounding import Rounding
from cloister.query.controls.sampling import RandomSample
from cloister.query.controls.sums import Audit, Witness
from cloister.query.controls.suppression import Suppression

__all__ = [
    "NOT_PRIVATE",
    "TOTAL",
    "Audit",
    "ControlledAnswer",
    "ControlledSession",
    "Controls",
    "InputPerturbation",
    "OutputPerturbation",
    "OwnerReport",
    "RandomSample",
    "Range",
    "Refusal",
    "Rounding",
    "Substitution",
    "Suppression",
    "Witness",
]
