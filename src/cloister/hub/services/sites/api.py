"""The API of data sets at several sites."""

import json
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from cloister.crypto import fingerprint
from cloister.hub.description import example
from cloister.hub.guidance import budget_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import key_of
from cloister.hub.services.sites.joining import Joining, Standing, change_roster, join, standings
from cloister.hub.web.routing import Routes

_PLAIN = r"^[^\x00]*$"
_Line = Annotated[str, Field(max_length=5000, pattern=_PLAIN)]
_Text = Annotated[str, Field(max_length=2**20, pattern=_PLAIN)]


class NewJointDataSet(BaseModel):
    """A data set of a roster that all of its sites signed."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        roster={
            "sites": [["north", "ab" * 32], ["south", "cd" * 32], ["west", "ef" * 32]],
            "hub": "01" * 32,
            "missing": 0,
            "threshold": 2,
            "epoch": 1,
        },
        signatures={"north": "ab" * 64, "south": "cd" * 64, "west": "ef" * 64},
        table='[tables.people]\n[tables.people.columns]\nage = { kind = "integer", low = 17, high = 90 }',
        overlap="none",
        title="Three hospitals",
        reason="The hospitals take adults up to 90.",
        population="patients",
        epsilon="2",
    )

    roster: Annotated[
        dict[str, Any],
        Field(description='As the sites signed it; "dropouts" is how many may drop out, if it is not as many as may collude.'),
    ]
    signatures: Annotated[dict[_Line, _Line], Field(max_length=1000)]
    table: Annotated[_Text, Field(description="The part [tables.NAME] of a site.toml, as each site declares it.")]
    overlap: Annotated[_Line, Field(description='At how many sites one person may have rows: "none", or a number from 2 on.')]
    title: _Line
    about: _Line = ""
    reason: Annotated[_Line, Field(description="Where the bounds come from, in public words.")]
    population: _Line
    epsilon: _Line = ""
    delta: _Line = ""
    rho: _Line = ""
    listed: bool = False


class SiteOut(BaseModel):
    """A site as the hub knows it."""

    name: str
    fingerprint: str
    present: str
    awaited: int = Field(description="Messages of open questions that wait for its answer.")


class JointOut(BaseModel):
    """A data set at several sites."""

    name: str
    roster: int = Field(description="The number of the roster: the next one has the next number.")
    sites: list[SiteOut]
    collude: int = Field(description="How many sites may collude with the hub.")
    dropouts: int = Field(description="How many sites may drop out of a query.")
    surplus: str = Field(description="How many times the variance of one table's answer that of all sites has.")


class NextRoster(BaseModel):
    """The roster after the one that a data set has, signed by all of its sites."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        roster={
            "sites": [["north", "ab" * 32], ["south", "0d" * 32], ["west", "ef" * 32]],
            "hub": "01" * 32,
            "missing": 0,
            "threshold": 2,
            "epoch": 2,
        },
        signatures={"north": "ab" * 64, "south": "cd" * 128, "west": "ef" * 64},
    )

    roster: dict[str, Any]
    signatures: Annotated[dict[_Line, _Line], Field(max_length=1000)]


class JointList(BaseModel):
    """One's own, and the key by which sites know this hub."""

    hub: str
    fingerprint: str
    items: list[JointOut]


def add(routes: Routes) -> None:
    @routes.get(
        "/joint-datasets",
        "dataset.register",
        "List your data sets at several sites",
        "The hub's key, and the data sets with their sites",
    )
    def listed(hub: HubDep, caller: PersonDep) -> JointList:
        """With when each site last called."""
        key = key_of(hub).public
        with hub.database.reading() as db:
            found = standings(hub, db, caller)
        return JointList(hub=key.hex(), fingerprint=fingerprint(key), items=[_shown(each) for each in found])

    @routes.post(
        "/joint-datasets",
        "dataset.register",
        "Register a data set at several sites",
        "The data set with its sites",
        status_code=201,
    )
    def make(hub: HubDep, caller: PersonDep, body: NewJointDataSet) -> JointOut:
        """Of a roster that all sites signed. The rows stay where they are."""
        asked = Joining(
            roster=json.dumps(body.roster),
            signatures=json.dumps(body.signatures),
            **body.model_dump(exclude={"roster", "signatures", "epsilon", "delta", "rho"}),
        )
        budget = budget_of(body.epsilon, body.delta, body.rho) if body.epsilon or body.rho else None
        made = join(hub, caller, asked, budget)
        return _out(hub, caller, made.name)

    @routes.post(
        "/joint-datasets/{name}/roster", "dataset.register", "Change the sites of a data set", "The data set with its sites"
    )
    def change(hub: HubDep, caller: PersonDep, name: Annotated[str, Path(max_length=63)], body: NextRoster) -> JointOut:
        """By the next roster, which all of its sites signed, a site with another key by its old one too. The budget stays."""
        change_roster(hub, caller, name, json.dumps(body.roster), json.dumps(body.signatures))
        return _out(hub, caller, name)


def _out(hub: Hub, caller: Caller, name: str) -> JointOut:
    with hub.database.reading() as db:
        return next(_shown(each) for each in standings(hub, db, caller) if each.name == name)


def _shown(each: Standing) -> JointOut:
    sites = [
        SiteOut(name=site, fingerprint=key, present=str(each.present[site]), awaited=len(each.awaited[site]))
        for site, key in each.fingerprints.items()
    ]
    return JointOut(
        name=each.name, roster=each.number, sites=sites, collude=each.collude, dropouts=each.dropouts, surplus=each.surplus
    )
