"""The story that a demonstration tells: each of its people follows the steps of their first page, role by role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.test_demo import running
from tests.hub.stories.town import ENGLISH, NARROW, Visitor, Way, walked
from tests.hub.web.browser import Guarded, browser, visit

__all__ = ["browser", "visit"]


@walked(ENGLISH)
def test_the_story_of_a_demonstration(tmp_path: Path, visit: Callable[..., Guarded], way: Way) -> None:
    width, language = way
    seen = set[str]()
    with running(temporary=tmp_path) as (_, found):

        def enters(role: str, *expected: str) -> Visitor:
            theme = "dark" if width == NARROW else "light"
            guarded = visit(found["address"], width=width, locale=language, theme=theme, expected=expected)
            somebody = Visitor(guarded, scripts=True, width=width, seen=seen, language=language)
            somebody.type_address(found["links"][role])
            somebody.main.locator("form button").first.click()
            somebody.arrived()
            return somebody

        def walks(somebody: Visitor, steps: int) -> None:
            """Each step of the story leads to a page that is there, and back."""
            story = somebody.main.locator("section.story li a")
            assert story.count() == steps
            home = somebody.page.url
            for place in range(steps):
                story.nth(place).click()
                somebody.arrived()
                somebody.type_address(home)

        ana = enters("analyst", "status of 403")
        walks(ana, 4)
        ana.page.goto(found["release"])
        ana.reads("±")
        ana.follow("Ask again")

        otto = enters("owner")
        walks(otto, 3)
        otto.main.locator("section.story li a").nth(2).click()
        grants = otto.main.locator("section.card", has=otto.page.locator("form[action$='/revoke']"))
        otto.press("Revoke", within=grants.filter(has_text=otto.told("Run a query")[0]).first)
        ana.fill("Query", "SELECT COUNT(*) AS n FROM census WHERE age >= 50")
        ana.press("Run")
        assert ana.main.get_by_role("alert").count() == 1, "her next query is denied"

        alma = enters("administrator")
        walks(alma, 2)
        alma.main.locator("section.story li a").first.click()
        alma.press("Verify")
        alma.reads("Every entry was checked: none was changed, dropped or rolled back.")

        rosa = enters("respondent")
        walks(rosa, 2)
        rosa.main.locator("section.story li a").first.click()
        assert rosa.page.url.rpartition("/")[2] == found["survey"].rpartition("/")[2]
        for each in (ana, otto, alma, rosa):
            each.page.close()  # before the hub ends: a page asks it for news
