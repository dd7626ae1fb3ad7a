"""What commands read with no declaration: a table (a file of one's own, or a sample), and names on a line."""

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


def names_in(text: str) -> list[str]:
    """Names on a line, between commas.

    >>> names_in("age, sex,")
    ['age', 'sex']
    """
    return [name.strip() for name in text.split(",") if name.strip()]
