"""A hub's first week, as its people live it in Chromium: set up, register, ask for access, grant, ask, run out of budget, decide,
revoke, audit. Clicks and typing only: by day in Chinese on a phone, some with scripts and some without; at night in all four ways
with scripts, and in two of them without.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.hub.stories import analyst, office, owner
from tests.hub.stories.town import CHINESE, ENGLISH, WAYS, Way, opened
from tests.hub.web.browser import Guarded, browser, visit  # noqa: F401  (fixtures)
from tests.tiers import some_by_day

REFUSALS = ("status of 403", "status of 409", "status of 422")


EVERYBODY = ("Alma", "Olga", "Ana", "Sam", "Rosa")


BY_DAY = (CHINESE, ("Ana", "Sam"))


@some_by_day(
    "way, scripts", [BY_DAY, *((way, EVERYBODY) for way in WAYS), (ENGLISH, ()), (CHINESE, ())], lambda case: case == BY_DAY
)
def test_a_first_week(tmp_path: Path, visit: Callable[..., Guarded], way: Way, scripts: tuple[str, ...]) -> None:  # noqa: F811
    with opened(tmp_path / "hub", visit, way=way, scripts=scripts) as town:
        alma, links = office.sets_up(town)
        olga = office.arrives(town, links[office.OLGA], "Olga", expected=REFUSALS)
        owner.registers(olga)

        ana = office.arrives(town, links[office.ANA], "Ana", expected=REFUSALS)
        analyst.asks_for_access(ana)
        owner.grants(olga)
        analyst.explains_and_rehearses(ana)
        sam = office.arrives(town, links[office.SAM], "Sam")
        analyst.runs(ana)
        analyst.saves_the_question(ana)
        analyst.runs_out(ana)

        owner.sees_the_uses(olga)
        owner.decides_on_the_budget(olga)
        analyst.goes_on(ana)
        office.is_shown(sam)
        owner.revokes(olga)
        analyst.is_denied(ana)

        office.looks_after(sam)
        office.sees_what_everybody_sees(office.arrives(town, links[office.ROSA], "Rosa", expected=REFUSALS))
        alma.go("Audit log")
        office.verifies(alma)
