"""What processes of the hub leave for one another about sites and key holders: messages with their answers, and who called."""

from sqlalchemy import BigInteger, Float, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class SiteMessage(Identified):
    """A message that waits for its answer, of one who asked, gone when it has the answer; or, of no parties, with which answers
    a step of a round ended."""

    __tablename__ = "site_message"

    parties: Mapped[str] = mapped_column(String(64), index=True)
    """The digest of the roster."""
    name: Mapped[str]
    digest: Mapped[str] = mapped_column(String(64))
    round: Mapped[str] = mapped_column(String(64))
    most: Mapped[int] = mapped_column(BigInteger())
    message: Mapped[bytes] = mapped_column(LargeBinary())
    answer: Mapped[bytes | None] = mapped_column(LargeBinary(), default=None)
    since: Mapped[float] = mapped_column(Float())
    ends: Mapped[float] = mapped_column(Float())

    @property
    def about(self) -> str:
        """What the message is bound to; the answer, to `answer to` it."""
        return f"site message {self.id}"


class SiteCall(Base):
    """When a site last called, and what was wrong then."""

    __tablename__ = "site_call"

    parties: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    seen: Mapped[float] = mapped_column(Float())
    problem: Mapped[str] = mapped_column()
