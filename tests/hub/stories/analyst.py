"""What the analyst does in the stories."""

from __future__ import annotations

import io
import re
import zipfile

from tests.hub.stories.office import SAM
from tests.hub.stories.town import Visitor

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


def asks_for_access(ana: Visitor) -> None:
    """A data set is found in the catalogue, and its owner is asked."""
    ana.go("Data sets")
    ana.fill("Name, column or label", "sex")
    ana.press("Search")
    ana.follow("Patients of the town")
    ana.reads("You may not query it yet")
    ana.reads("%(low)s to %(high)s", low="17", high="90")
    ana.follow("Ask for access")
    ana.fill("Purpose", "A study of care")
    ana.tick("Run a query", "See a release", "Download a release", "Share a release")
    ana.fill("A message to the owner", "May we count?")
    ana.press("Send the request")
    ana.reads("A study of care", "Open")


def explains_and_rehearses(ana: Visitor) -> None:
    """The margin and the price before anything is spent, as one types where scripts run; and an answer from made-up rows."""
    ana.go("Requests")
    ana.reads("Granted")
    ana.go("Ask in SQL")
    _writes(ana, "SELECT AVG(pay) AS pay FROM patients", "0.1", "care paths")
    ana.press("Explain")
    ana.reads("pay", "Instead")  # the grant is for age and sex
    _writes(ana, BY_SEX, "0.1", "care paths")
    if ana.scripts:
        ana.main.get_by_text(ana.told("Expected answer")[0]).first.wait_for()
    else:
        ana.press("Explain")
    ana.reads("Expected answer", "± 30", "ε = 0.1")
    ana.reads("Your share of %(population)s, with this answer", population="townspeople")
    ana.press("Rehearse")
    ana.reads("These rows are made up")
    ana.reads("They follow the declarations and nothing else. Nothing private was read, and nothing was spent.")


def runs(ana: Visitor) -> None:
    """A table with margins, a chart, a file; the answer gets a name, and the steward is shown it."""
    ana.press("Run")
    ana.reads("{statistics} by {keys}", statistics=_counted(ana), keys="sex")
    ana.reads("± 30", "care paths", "ε = 0.1")
    numbers = [each for each in ana.main.locator("tbody .number").all_text_contents() if each]
    assert len(numbers) == 2
    assert all(re.fullmatch(r"[\d,]+", each) for each in numbers)
    chart = ana.main.locator("figure img")
    assert chart.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    drawn = ana.told("{measured} by {key}", measured="n", key="sex")[0]
    said = "{shown}, with error bars at {share} %: the table has the same numbers"
    assert chart.get_attribute("alt") in ana.told(said, shown=drawn, share="95")
    with ana.page.expect_download() as coming:
        ana.main.get_by_role("link", name="CSV").click()
    kept = zipfile.ZipFile(io.BytesIO(coming.value.path().read_bytes()))
    table = next(name for name in kept.namelist() if name.endswith(".csv"))
    assert kept.read(table).decode().splitlines()[0].startswith("sex,n,")
    ana.fill("Name of the answer", "Care by sex")
    ana.press("Change")
    ana.reads("Care by sex")
    ana.fill("E-mail address", SAM)
    ana.press("Share")
    ana.reads("The person with this address here sees it now. Send them the link.", SAM)


def saves_the_question(ana: Visitor) -> None:
    """One click asks it again, and what was paid for is not paid for twice."""
    ana.follow("Ask again")
    ana.unfold("More")
    ana.fill("Save it under a name", "Patients by sex")
    ana.press("Save")
    ana.reads("The query was saved.")
    ana.follow("Saved queries")
    ana.follow("Patients by sex")
    ana.press("Explain")
    ana.reads("answered before", "nothing: it was charged before")


def runs_out(ana: Visitor) -> None:
    """Two questions more, and the share is too small for a third: the refusal says what to do, and the owner is asked."""
    for age in (40, 41):
        asks(ana, f"SELECT COUNT(*) AS n FROM patients WHERE age >= {age}", "0.05")
        ana.reads("{statistics}, where {condition}", statistics=_counted(ana), condition=f"age >= {age}")
    asks(ana, "SELECT COUNT(*) AS n FROM patients", "0.2")
    ana.reads("Why", "Instead", "ε = 0.1", "ana@example.org")
    ana.go("Budgets")
    ana.follow("townspeople", exact=False)
    ana.reads("Your share")
    ana.fill("Share in all", "0.6")
    ana.fill("Reason", "The second half of the study")
    ana.press("Send the request")
    ana.reads("Your request was sent to the owner.")


def goes_on(ana: Visitor) -> None:
    """With the larger share; the next question is written, and not yet asked."""
    asks(ana, "SELECT COUNT(*) AS n FROM patients", "0.2")
    ana.reads(_counted(ana))
    ana.go("Ask in SQL")
    _writes(ana, "SELECT sex, COUNT(*) AS n FROM patients WHERE age >= 60 GROUP BY sex", "0.1", "once more")


def is_denied(ana: Visitor) -> None:
    """The grant is gone since that was written: which rule denied, and whom to ask; nothing about the data."""
    ana.press("Run")
    ana.reads("the grant was revoked", "Rule", "A grant of the data's owner", "No data set is open to you yet")
    ana.reads("{action}: denied", action=ana.told("Run a query")[0])
    ana.follow("See the data sets")
    ana.reads("Patients of the town", "ask for access")


def asks(ana: Visitor, sql: str, spend: str, purpose: str = "care paths") -> None:
    """A question, from the first click on."""
    ana.go("Ask in SQL")
    _writes(ana, sql, spend, purpose)
    ana.press("Run")


def _counted(ana: Visitor) -> str:
    return ana.told("Count of {name}", name="patients")[0]


def _writes(ana: Visitor, sql: str, spend: str, purpose: str) -> None:
    ana.fill("Query", sql)
    ana.fill("Spend", spend)
    ana.fill("Purpose", purpose)
