"""What the API of access takes and gives. A field that is not named here is refused: nobody sets what nobody offers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, Field

from cloister.hub.description import READABLE, Taken, example

Name = Annotated[str, Field(min_length=1, max_length=63), READABLE]
Title = Annotated[str, Field(min_length=1, max_length=200), READABLE]
Text = Annotated[str, Field(max_length=4000), READABLE]
T = TypeVar("T")
_RULES = (
    "Actions and conditions, in the JSON form of grants. `risk`, between 0 and 1: how much better than a coin an attacker's best "
    "guess whether one person is in the data may become by all that one asker draws from the population; usually 0.05 to 0.5. "
    "About a value of somebody who is in the data a guess may be better: ε counts twice there."
)
Rules = Annotated[dict[str, Any], Field(description=_RULES)]


class Items(BaseModel, Generic[T]):
    """Some entries; `next` is the `after` of the page that follows."""

    items: list[T]
    next: str | None = None


def paged(found: Sequence[T], after: str, limit: int) -> Items[T]:
    """The entries that follow the one whose id is `after`; all of them are known, since nobody has very many.

    >>> class Entry(BaseModel):
    ...     id: str
    >>> page = paged([Entry(id="a"), Entry(id="b"), Entry(id="c")], "a", 1)
    >>> [each.id for each in page.items], page.next
    (['b'], 'b')
    """
    ids = [getattr(each, "id", "") for each in found]
    begin = ids.index(after) + 1 if after in ids else 0
    shown = list(found[begin : begin + limit])
    return Items(items=shown, next=ids[begin + limit - 1] if len(found) > begin + limit else None)


class NewGrant(Taken):
    """A role on a data set: who is in it, and what they may do."""

    model_config = example(
        data_set="people",
        role="reader",
        members={"people": ["ada@example.org"]},
        rules={"actions": ["question.ask"], "purposes": ["research"], "share": {"epsilon": "0.5"}},
    )

    data_set: Name
    role: Title
    members: Annotated[dict[str, Any], Field(description="People (ids or e-mail addresses), institutions, projects, training.")]
    rules: Rules


class AccessWish(Taken):
    """A request for access."""

    model_config = example(
        data_set="people", purpose="research", wanted={"actions": ["question.ask"]}, message="For the heart study."
    )

    data_set: Name
    purpose: Annotated[Text, Field(min_length=1, max_length=1000)]
    wanted: Rules
    project: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z0-9_-]*$")] = ""
    message: Text = ""


class AccessGiven(Taken):
    """A yes: what is granted, which may be narrower than what was asked for."""

    model_config = example(rules={"actions": ["question.ask"], "until": "2030-12-31T00:00:00Z"}, role="reader")

    rules: Rules
    role: Annotated[str, Field(max_length=200), READABLE] = ""
    message: Text = ""


class Refusing(Taken):
    """A no, with its reason."""

    model_config = example(reason="The consent does not cover it.")

    reason: Annotated[Text, Field(min_length=1)]


class Saying(Taken):
    """A message."""

    model_config = example(text="Which columns do you need?")

    text: Annotated[Text, Field(min_length=1)]


class NewProject(Taken):
    """A project to start."""

    model_config = example(name="heart-study", title="The heart study", purpose="research")

    name: Name
    title: Title
    purpose: Annotated[Text, Field(min_length=1, max_length=1000)]
    about: Annotated[str, Field(max_length=2000), READABLE] = ""


class Joining(Taken):
    """Somebody to take in."""

    model_config = example(email="ada@example.org")

    email: Annotated[str, Field(min_length=3, max_length=320), READABLE]


class AskDataSet(Taken):
    """A data set to ask for."""

    model_config = example(data_set="people")

    data_set: Name


class ProjectOut(BaseModel):
    """A project."""

    id: str
    name: str
    title: str
    purpose: str
    about: str
    lead: str
    members: list[str]
    invited: list[str] = Field(description="For its members: the addresses whose invitation is open.")
    data_sets: dict[str, bool] = Field(description="Data set → whether its owner approved.")
    waiting: dict[str, list[str]] = Field(description="Data set → members who joined after its owner approved.")
    created: datetime
    closed: datetime | None


class NewAlgorithm(Taken):
    """An algorithm to register."""

    model_config = example(
        name="by-sex", title="By sex", service="asking", settings={"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"}
    )

    name: Name
    title: Title
    service: Name
    settings: dict[str, Any] = Field(default_factory=dict)
    about: Annotated[str, Field(max_length=2000), READABLE] = ""
    version_of: Annotated[str, Field(max_length=63, description="An earlier version of one's own.")] = ""


class AlgorithmOut(BaseModel):
    """An algorithm."""

    id: str
    name: str
    title: str
    about: str
    service: str
    package: str
    version: int
    settings: dict[str, Any]
    created: datetime
    withdrawn: datetime | None
