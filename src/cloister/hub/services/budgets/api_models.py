"""What the API of budgets takes and gives. Guarantees are exact: texts of ε, δ and ρ."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cloister.hub.description import example
from cloister.hub.policy.texts_write import guarantee_text
from cloister.hub.services.budgets.granted import GrantedShare
from cloister.hub.services.budgets.reading import Balance, Share, nothing_of
from cloister.ledger import Charge
from cloister.printable import is_printable


def _readable(text: str) -> str:
    if not is_printable(text, lines=True):
        raise ValueError("a character that cannot be seen")
    return text


Exact = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[0-9eE.+/-]+$", description="An exact number: 0.1, 1/3.")]
Text = Annotated[str, Field(max_length=1000), AfterValidator(_readable)]


class _Taken(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Raising(_Taken):
    """A larger budget: ε (or ρ), perhaps a larger δ, and why."""

    model_config = example(amount="2", why="a second wave of the study")

    amount: Exact
    why: Annotated[Text, Field(min_length=1)]
    delta: Annotated[str, Field(max_length=60, pattern=r"^[0-9eE.+/-]*$")] = ""


class Allotting(_Taken):
    """A share: whose (an e-mail address, or the name of a project), and how much in all."""

    model_config = example(who="ada@example.org", amount="0.5")

    who: Annotated[Text, Field(min_length=1, max_length=320)]
    amount: Exact


class ShareWish(_Taken):
    """A request for a share of so much in all."""

    model_config = example(amount="0.5", reason="the second half of the study")

    amount: Exact
    reason: Annotated[Text, Field(min_length=1)]
    project: Annotated[str, Field(max_length=32, pattern=r"^[A-Za-z0-9_-]*$")] = ""


class ShareDecision(_Taken):
    """The answer: yes (to so much, where it is another amount), or no with a reason."""

    model_config = example(grant=True, amount="0.25")

    grant: bool
    amount: Annotated[str, Field(max_length=60, pattern=r"^[0-9eE.+/-]*$")] = ""
    message: Text = ""


class Asked(BaseModel):
    """A request for a share."""

    id: str
    population: str
    wanted: str
    reason: str
    state: str
    created: datetime
    decided: datetime | None


class Requests(BaseModel):
    """The newest requests; older ones are on the pages of their budgets."""

    items: list[Asked]
    next: str | None


class ShareOut(BaseModel):
    """A share, and what is left of it."""

    who: str
    share: dict[str, str]
    left: dict[str, str]

    @classmethod
    def of(cls, share: Share, *, frozen: bool = False) -> ShareOut:
        """From the ledger's."""
        left = nothing_of(share.share) if frozen else share.left
        return cls(who=share.who, share=guarantee_text(share.share), left=guarantee_text(left))


class GrantedOut(BaseModel):
    """The share that a grant gives: what somebody may have drawn in all while it stands. It ends with the grant; what was drawn
    stays counted."""

    grant: str
    data_set: str
    role: str
    who: str
    share: dict[str, str]
    drawn: dict[str, str] | None = Field(description="What was drawn in all; null: the grant names nobody, and each has so much.")
    state: str = Field(description="active, waiting, expired, revoked; deleted, with its data set.")
    ends: datetime | None = Field(description="When it ended, or will.")

    @classmethod
    def of(cls, share: GrantedShare) -> GrantedOut:
        """From the grant and the ledger."""
        return cls(
            grant=share.grant,
            data_set=share.data_set,
            role=share.role,
            who=share.who,
            share=guarantee_text(share.share),
            drawn=None if share.drawn is None else guarantee_text(share.drawn),
            state=share.state,
            ends=share.ends,
        )


class BalanceOut(BaseModel):
    """A population's budget."""

    population: str
    title: str
    total: dict[str, str]
    spent: dict[str, str]
    remaining: dict[str, str]
    frozen: bool = Field(default=False, description="The ledger charges nothing until it is restored: nothing is left to spend.")
    unbounded: bool = Field(description="Something left without a guarantee: no number bounds what is known.")
    mine: ShareOut | None = Field(description="Your own share, as its owner set it; null: none was set.")
    shares: list[ShareOut] = Field(default_factory=list, description="Every share that you may see; only for one budget.")
    granted: list[GrantedOut] = Field(
        default_factory=list, description="Shares that come with grants, those that are over too; only for one budget."
    )

    @classmethod
    def of(cls, balance: Balance, shares: list[Share] | None = None, granted: list[GrantedShare] | None = None) -> BalanceOut:
        """From the ledger's."""
        return cls(
            population=balance.population,
            title=balance.title,
            total=guarantee_text(balance.total),
            spent=guarantee_text(balance.spent),
            remaining=guarantee_text(balance.left),
            frozen=balance.frozen,
            unbounded=balance.unbounded,
            mine=None if balance.mine is None else ShareOut.of(balance.mine, frozen=balance.frozen),
            shares=[ShareOut.of(each, frozen=balance.frozen) for each in shares or []],
            granted=[GrantedOut.of(each) for each in granted or []],
        )


class Balances(BaseModel):
    """Some budgets; `next` is the `after` of the page that follows."""

    items: list[BalanceOut]
    next: str | None


class ChargeOut(BaseModel):
    """One charge."""

    id: int
    who: str
    what: str
    when: datetime
    cost: dict[str, str] | None
    state: str
    purpose: str

    @classmethod
    def of(cls, charge: Charge) -> ChargeOut:
        """From the ledger's."""
        return cls(
            id=charge.id,
            who=charge.who,
            what=charge.what,
            when=charge.when,
            cost=None if charge.cost is None else guarantee_text(charge.cost),
            state=charge.state,
            purpose=charge.purpose,
        )


class Charges(BaseModel):
    """Some charges, the newest first; `next` is the `after` of the page that follows."""

    items: list[ChargeOut]
    next: int | None
