"""Guests: anybody's algorithm near rows that its author may not see, and nothing but a private result leaves.

    algorithm.py what an author writes: code, inputs, a declared output, and which of three ways it runs
    code.py      the text of a guest, checked before it runs
    outputs.py   the numbers that a guest may return, within declared bounds
    blocks.py    way "blocks": the code runs on disjoint parts of the people, and what it says of them is averaged with noise
    declared.py  way "declared": a mechanism with its author's proof, admitted by two people after an audit
    asking.py    way "ask": the code gets no rows, but answers at the door, within a share of the budget
    trial.py     an author's own tests, and runs on made-up rows
    sandbox/     where the code runs: WebAssembly without files, network, clock or chance; or, for admitted code, processes

Lives here: whatever keeps foreign code from rows and rows from the outside. May not live here: a mechanism's noise (`noise`),
a charge (`session`), or who may run what (`hub`).
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.guests.algorithm import Guest as Guest
    from cloister.guests.algorithm import Result as Result
    from cloister.guests.algorithm import guest as guest
    from cloister.guests.asking import ask as ask
    from cloister.guests.declared import Admission as Admission
    from cloister.guests.declared import admit as admit
    from cloister.guests.declared import audit_declared as audit_declared
    from cloister.guests.outputs import Table as Table
    from cloister.guests.outputs import Vector as Vector
    from cloister.guests.trial import run_tests as run_tests
    from cloister.guests.trial import run_trial as run_trial

__all__, __getattr__, __dir__ = Lazily(__name__).public
