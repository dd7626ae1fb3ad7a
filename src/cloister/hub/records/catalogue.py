"""Populations, data sets, their versions and what arrived to become one, as the hub keeps them. Rows are not here: they are in
`storage`, encrypted.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class Population(Base):
    """A space of people (or households, or groups) whose budget its data sets share. The budget itself is the ledger's."""

    __tablename__ = "population"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    """As the ledger knows it."""
    title: Mapped[str] = mapped_column(String(200))
    unit: Mapped[str] = mapped_column(String(40), default="person")
    """What one member is: person, household, group."""
    owner: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    about: Mapped[str] = mapped_column(default="")
    people: Mapped[int | None] = mapped_column(default=None)
    """The declared public size, for the warning about δ."""
    created: Mapped[datetime]


class DataSet(Identified):
    """A table that is registered: what it is called, what is declared of it, and the policy that it carries."""

    __tablename__ = "data_set"

    name: Mapped[str] = mapped_column(String(63), unique=True)
    """Its name in questions."""
    title: Mapped[str] = mapped_column(String(200))
    about: Mapped[str] = mapped_column(default="")
    owner: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    provider: Mapped[str] = mapped_column(String(320), default="")
    """The e-mail address of the data provider who gave the data, where that is another than the owner."""
    institution: Mapped[str] = mapped_column(String(200), default="")
    public: Mapped[bool] = mapped_column(default=False)
    population: Mapped[str | None] = mapped_column(ForeignKey("population.name"), default=None, index=True)
    declaration: Mapped[dict[str, Any]]
    """Columns, unit, row cap, size: what `PrivateTable` is given, as JSON (`records/declarations.py`)."""
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", default=dict)
    """Purpose, consent basis, sensitivity, retention, labels, combinable_with, and the same by column: the policy that travels.
    """
    released: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Of what was released as a data set: the population and the institution whose data it was made of. Their rules hold for it
    too; and though it is public, having no budget, it is open to those alone to whom its owner grants it.
    """
    window: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """For a growing data set: how its budget is cut into windows of time."""
    version: Mapped[int] = mapped_column(default=0)
    """The number of the version that questions read; 0: none yet."""
    state: Mapped[str] = mapped_column(String(20), default="draft")
    """draft, open, closed, deleted."""
    created: Mapped[datetime]
    changed: Mapped[datetime]


class DataSetPart(Base):
    """That a data set is made of another one, among others: it is asked under the policy of each, and each one's people pay."""

    __tablename__ = "data_set_part"

    data_set: Mapped[str] = mapped_column(ForeignKey("data_set.id"), primary_key=True)
    part: Mapped[str] = mapped_column(ForeignKey("data_set.id"), primary_key=True, index=True)
    place: Mapped[int]


class DataSetVersion(Identified):
    """One state of the rows: a stored file under a key of its own, or a connection."""

    __tablename__ = "data_set_version"
    __table_args__ = (UniqueConstraint("data_set", "number"),)

    data_set: Mapped[str] = mapped_column(ForeignKey("data_set.id"), index=True)
    number: Mapped[int]
    kind: Mapped[str] = mapped_column(String(20))
    """stored, or connection."""
    file: Mapped[str] = mapped_column(String(200), default="")
    key: Mapped[bytes | None] = mapped_column(default=None)
    """The data key, wrapped by the master key; None after deletion."""
    digest: Mapped[str] = mapped_column(String(64), default="")
    address: Mapped[bytes | None] = mapped_column(default=None)
    """The connection, wrapped."""
    format: Mapped[str] = mapped_column(String(20), default="")
    length: Mapped[int] = mapped_column(BigInteger, default=0)
    origin: Mapped[str] = mapped_column(String(64), default="", index=True)
    """A keyed digest of what was sent, or of the table that is connected: the same rows are found again, and nobody without the
    hub's secret can try files against it."""
    created: Mapped[datetime]
    created_by: Mapped[str] = mapped_column(String(32))
    destroyed: Mapped[datetime | None] = mapped_column(default=None)
    declaration: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """What it was declared as, where the data set is declared otherwise since; else empty."""

    @property
    def about(self) -> str:
        """What its key is bound to: whose rows, which version, which file."""
        return f"data set {self.data_set} version {self.number} file {self.file}"

    @property
    def place(self) -> str:
        """What its connection's address is bound to, as `storage` has it."""
        return f"{self.id} of data set {self.data_set} version {self.number}"


class Arrival(Base):
    """An upload that arrived whole, or a connection that was made, and that is no data set yet: its sender's alone, for a day."""

    __tablename__ = "arrival"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """Of an upload, the table store's; it becomes the id of the version that is made of it."""
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    kind: Mapped[str] = mapped_column(String(20))
    """csv, parquet, or connection."""
    shown: Mapped[str] = mapped_column(String(300), default="")
    """The name of the file, or the address without its password."""
    digest: Mapped[str] = mapped_column(String(64), default="")
    """SHA-256 of what was sent."""
    length: Mapped[int] = mapped_column(BigInteger, default=0)
    wrapped: Mapped[bytes]
    """The upload's key, or the connection's address, wrapped."""
    columns: Mapped[list[Any]]
    """Name, kind and suggestion of each column."""
    typed: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What was typed into the form so far."""
    file: Mapped[str] = mapped_column(String(200), default="")
    """The table store's file, once the upload was stored; then `key` and the following two hold too."""
    key: Mapped[bytes | None] = mapped_column(default=None)
    file_digest: Mapped[str] = mapped_column(String(64), default="")
    file_length: Mapped[int] = mapped_column(BigInteger, default=0)
    created: Mapped[datetime]

    @property
    def about(self) -> str:
        """What the key of its stored table is bound to."""
        return f"arrival {self.id} file {self.file}"
