"""Surveys: how they are composed, what came in, and which invitations are still good."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified, Shaped, ShapedText, TextOfJSON

_UNORDERED = {"sqlite_with_rowid": False}
"""Rows lie in the order of their names, which are chance. SQLite would number them as they come otherwise: the numbers would put
the reports in order, and a ticket that came with a report beside it."""


class HeldSurvey(Identified):
    """A survey, from its first draft to its end."""

    __tablename__ = "survey"

    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    title: Mapped[str] = mapped_column(String(200))
    purpose: Mapped[str] = mapped_column(default="")
    draft: Mapped[dict[str, Any]] = mapped_column(Shaped(dict, "introduction", "levels", "cap", "questions"))
    """What its author wrote: introduction, levels, questions. Once it is open, nothing of it changes."""
    invited: Mapped[bool] = mapped_column(default=False)
    """Whether a report needs an invitation that nobody used before."""
    hoped: Mapped[int] = mapped_column(default=1000)
    state: Mapped[str] = mapped_column(String(20), default="draft")
    """draft, open, closed."""
    body: Mapped[str] = mapped_column(TextOfJSON(dict), default="")
    """The survey as JSON, as respondents get it: its integers are the promise. Empty while it is a draft."""
    tally: Mapped[str] = mapped_column(TextOfJSON(dict), default="")
    """What was counted so far, as JSON: counts alone."""
    words: Mapped[str] = mapped_column(TextOfJSON(dict, "n", "told"), default="")
    """What was found for the questions that ask for words, as JSON, and of how many reports."""
    looking: Mapped[str] = mapped_column(String(32), default="")
    """The job that looks for words, or the last one that did."""
    created: Mapped[datetime]
    opened: Mapped[datetime | None] = mapped_column(default=None)
    closed: Mapped[datetime | None] = mapped_column(default=None)


class SurveyTicket(Base):
    """An invitation, or the mark that a report was sent: a digest, and whether it is used up. It names nobody, and no report."""

    __tablename__ = "survey_ticket"
    __table_args__ = _UNORDERED

    survey: Mapped[str] = mapped_column(ForeignKey("survey.id"), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    used: Mapped[bool] = mapped_column(default=False)


class SurveyReport(Identified):
    """What one respondent's machine sent: randomised values. No time, no address, no invitation, and a name by chance, so that
    the reports stand in no order."""

    __tablename__ = "survey_report"
    __table_args__ = _UNORDERED

    survey: Mapped[str] = mapped_column(ForeignKey("survey.id"), index=True)
    body: Mapped[str]
    """As JSON, under a new token: the one that it came with is used up, and kept nowhere beside it."""
    counted: Mapped[bool] = mapped_column(default=False, index=True)
    """Whether the tally holds it."""


class SurveyRefusal(Identified):
    """Why a report could not be one, from a short list of reasons. No report is kept that was not believed."""

    __tablename__ = "survey_refusal"

    survey: Mapped[str] = mapped_column(ForeignKey("survey.id"), index=True)
    reason: Mapped[str] = mapped_column(String(60))


class HeldJointSurvey(Identified):
    """A survey whose answers this hub and a helper of another institution add up: neither can read one."""

    __tablename__ = "joint_survey"

    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    title: Mapped[str] = mapped_column(String(200))
    purpose: Mapped[str] = mapped_column(default="")
    questions: Mapped[list[Any]]
    """As `JointQuestion.to_dict` writes them. Once a helper is asked, nothing of them changes."""
    invited: Mapped[bool] = mapped_column(default=False)
    state: Mapped[str] = mapped_column(String(20), default="draft")
    """draft, joining (a helper is asked), open, closed (the helper's share is awaited), done."""
    link: Mapped[str] = mapped_column(String(64), default="")
    """The digest of the secret in the helper's link."""
    helper: Mapped[dict[str, Any]]
    """Its name and its public key, once it has joined."""
    sums: Mapped[Any] = mapped_column(ShapedText(list), nullable=False)
    """This hub's shares of the sums so far: numbers by chance without the helper's. None once its noise is in."""
    result: Mapped[dict[str, Any]]
    """`own`: this hub's shares with its noise, until the helper gives its own. Then the sums that were opened, with their noise,
    and of how many reports they are."""
    created: Mapped[datetime]
    opened: Mapped[datetime | None] = mapped_column(default=None)
    closed: Mapped[datetime | None] = mapped_column(default=None)


class JointTicket(Base):
    """An invitation to a joint survey, as a digest."""

    __tablename__ = "joint_ticket"
    __table_args__ = _UNORDERED

    survey: Mapped[str] = mapped_column(ForeignKey("joint_survey.id"), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    used: Mapped[bool] = mapped_column(default=False)


class JointReportRow(Base):
    """A report: until both servers have checked it, this hub's share and the helper's, sealed; then its nonce."""

    __tablename__ = "joint_report"
    __table_args__ = _UNORDERED

    survey: Mapped[str] = mapped_column(ForeignKey("joint_survey.id"), primary_key=True)
    nonce: Mapped[str] = mapped_column(String(32), primary_key=True)
    body: Mapped[str]
    state: Mapped[str] = mapped_column(String(10), default="new", index=True)
    """new, counted, dropped."""
