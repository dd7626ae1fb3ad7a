"""Tables that a command reads with no declaration: a file of one's own, or a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def table_of(data: Path) -> Any:
    """The file, or the sample of people who are made up.

    >>> table_of(Path("people.csv"))
    PosixPath('people.csv')
    """
    if str(data) == "census" and not data.exists():
        from cloister.anonymize.frames import need_polars
        from cloister.samples import census

        source: Any = census().source
        return need_polars().DataFrame(source.table)
    return data
