"""A column that names something, such as a visit: it can be joined on and counted, and its values are private.

Its codes are texts, written as the names of units are (`preparation.py`): 4, 4.0 and "4" are one name, whatever the type of the
column that holds it. So it is a text in every other respect: as a released key it needs a noisy threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.tables.declaring.columns import Text


@dataclass(frozen=True, slots=True)
class Identifier(Text):
    """The name of a row, a visit or a device: whole numbers or text. Another table's `through=` may refer to it.

    >>> Identifier().describe()
    {'kind': 'identifier', 'nullable': False}
    """

    def describe(self) -> dict[str, Any]:
        """Kind and NULL handling."""
        return {"kind": "identifier", "nullable": self.nullable}
