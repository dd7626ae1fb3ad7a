"""What every answer under controls says of itself, and the events that the ledger keeps of it.

Controls are not differential privacy: nothing bounds what exact answers tell. So they leave by the second, marked door, and the
population's spending reads "unbounded" from the first of them on. A refusal by set size or overlap is a bit about the rows, so
it is marked in the same way before it leaves.
"""

import json
import re

from cloister.ledger import Ledger
from cloister.printable import shown
from cloister.tables import Expression

NOT_PRIVATE = "NOT differentially private: answered under inference controls, for trusted insiders; nothing bounds what it tells"
"""The sentence that stands on every answer."""

_LONGEST = 700
_LINE = re.compile(r"controls ([0-9a-f]{16}) line ([0-9]+): ")


def in_words(statistic: str, table: str, where: Expression | None, by: tuple[str, ...] = ()) -> str:
    """A question in one line of plain ASCII, for the ledger and for reports.

    >>> from cloister.tables import Column, Compare, Literal
    >>> in_words("count", "staff", Compare("=", Column("sex"), Literal("F")), by=("town",))
    'count of staff where ["compare", "=", ["column", "sex"], ["literal", "str", "F"]] by town'
    """
    text = f"{statistic} of {table}"
    if where is not None:
        text += f" where {json.dumps(where.describe())}"
    if by:
        text += f" by {', '.join(by)}"
    text = shown(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def note_answer(ledger: Ledger, population: str, place: str, line: int, *, who: str, what: str) -> None:
    """The NotPrivate event of an answer, with the number of its last line in the history."""
    ledger.note_not_private(population, who=who, what=f"controls {place} line {line}: {what} (not differentially private)")


def note_refusal(ledger: Ledger, population: str, *, who: str, what: str) -> None:
    """The NotPrivate event of a refusal that depended on the rows."""
    ledger.note_not_private(population, who=who, what=f"controls refused: {what} (a refusal is not differentially private)")


def lines_known(ledger: Ledger, population: str, place: str) -> int:
    """How many lines of history the ledger knows of: a history with fewer was cut, or put back from a backup."""
    known = 0
    for charge in ledger.charges(population):
        found = _LINE.match(charge.what) if charge.state == "not private" else None
        if found is not None and found.group(1) == place:
            known = max(known, int(found.group(2)))
    return known
