"""How much an upload may be, and what it may be."""

from dataclasses import dataclass

from cloister.errors import InvalidParameter

KINDS = ("csv", "parquet")


class RefusedUpload(InvalidParameter):
    """What was sent is no table that the hub takes, or not what it was said to be."""

    stored = "RefusedUpload"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most of one upload."""

    bytes: int = 2**31
    columns: int = 1000
    rows: int = 10**9
    expanded: int = 2**36
    """Bytes of all pages of a Parquet file after decompression."""
    row_groups: int = 100_000
    footer: int = 2**26
    """Bytes of what a Parquet file says of itself, which is read in one piece."""
    memory: str = "1GiB"
    """What DuckDB may take while it reads an upload."""

    def check(self, what: str, found: int, most: int) -> None:
        """Refuses what is more than the most.

        >>> Limits().check("columns", 3, 2)
        Traceback (most recent call last):
        cloister.hub.storage.limits.RefusedUpload: The upload is invalid: it has more than 2 columns, the most here.
          Instead: a smaller extract, or a connection to the database that holds it
        """
        if found > most:
            raise RefusedUpload(
                "The upload is invalid",
                why=f"it has more than {most:,} {what}, the most here",
                instead="a smaller extract, or a connection to the database that holds it",
            )
