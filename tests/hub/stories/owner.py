"""What the owner of a data set does in the stories."""

from __future__ import annotations

from datetime import date, timedelta

from tests.hub.stories.town import Visitor

_SEXES = "FMF"
CSV = ("age,sex,pay\n" + "".join(f"{20 + each % 60},{_SEXES[each % 3]},{30 + each % 40}\n" for each in range(300))).encode()
UNTIL = (date.today() + timedelta(days=90)).isoformat()


def registers(olga: Visitor) -> None:
    """A file is sent, declared, corrected once, looked at and opened; everybody finds it."""
    olga.go("Data sets")
    olga.reads("No data set yet")
    olga.follow("Register a data set")
    olga.main.locator("input[type=file]").set_input_files({"name": "patients.csv", "mimeType": "text/csv", "buffer": CSV})
    olga.press("Upload")
    olga.fill("Title", "Patients of the town")
    _column(olga, "age", "integer", "17", "90", "the register takes adults")
    _column(olga, "pay", "real", "0", "100", "the published scale")
    sex = olga.main.locator("tr", has=olga.page.locator("th code", has_text="sex"))
    olga.fill("Public reason for bounds or categories", "", within=sex)
    olga.tick("the only row of one person (or household, or group)")
    olga.fill("Public estimate of the number of rows", "300")
    olga.fill("Name of the new population", "townspeople")
    olga.fill("ε", "1", within=olga.main.locator(".field", has=olga.page.locator("#f-epsilon")))
    olga.tick("List it in the catalogue", "No bound, category or size above was read from the rows.")
    olga.press("Review")
    olga.reads("their public reason is missing, and a bound that is copied from the data is a leak")
    olga.fill("Public reason for bounds or categories", "the register's two codes", within=sex)
    olga.press("Review")
    olga.reads("the published scale", "townspeople")
    olga.press("Open it")
    olga.reads("patients is open.")


def _column(olga: Visitor, name: str, kind: str, low: str, high: str, reason: str) -> None:
    column = olga.main.locator("tr", has=olga.page.locator("th code", has_text=name))
    for label, text in (("Kind", kind), ("From", low), ("To", high), ("Public reason for bounds or categories", reason)):
        olga.fill(label, text, within=column, exact=True)


def grants(olga: Visitor) -> None:
    """The request is granted: counts of age and sex, for one purpose, until a day; and a share of the budget is set."""
    olga.go("Overview")
    olga.follow("Ana: patients", exact=False)
    olga.reads("A study of care", "May we count?")
    olga.fill("Message", "For counts, yes.")
    olga.press("Send")
    grant = olga.card("Grant it")
    olga.tick("Run a query", "See a release", "Download a release", "Share a release", "See a budget", within=grant, exact=True)
    olga.tick("age", "sex", within=grant, exact=True)
    olga.fill("Other purposes", "care paths, once more", within=grant)
    olga.fill("Until", UNTIL, within=grant)
    olga.press("Grant", within=grant)
    olga.reads("Granted")
    olga.go("Budgets")
    olga.follow("townspeople", exact=False)
    share = olga.card("Give a share")
    olga.fill("E-mail address", "ana@example.org", within=share)
    olga.fill("Share in all", "0.3", within=share)
    olga.press("Set the share")
    olga.reads("The share was set.")


def sees_the_uses(olga: Visitor) -> None:
    """What ran on the data, for whom, at what cost; the budget is as it was opened."""
    olga.go("Data sets")
    olga.follow("Patients of the town")
    olga.follow("Manage")
    olga.reads(f"{olga.told('Query run')[0]} · care paths", "Ana")
    olga.follow("All entries in the audit log")
    olga.reads("townspeople: ε = 0.1", "care paths")
    olga.go("Budgets")
    olga.follow("townspeople", exact=False)
    olga.reads("Charges", "ana@example.org", "Opened")
    assert olga.main.locator("td").get_by_text(olga.named("Raised")).count() == 0
    chart = olga.main.locator("figure img")
    assert chart.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


def decides_on_the_budget(olga: Visitor) -> None:
    """A larger share, with a word."""
    olga.go("Overview")
    olga.follow("One request waits for you")
    olga.follow("Ana: townspeople", exact=False)
    asked = olga.main.locator("#requests")
    olga.reads("The second half of the study")
    olga.fill("Message; when you refuse, your reason", "Then that is all.", within=asked)
    olga.press("Grant", within=asked)
    olga.reads("The share was granted.")


def revokes(olga: Visitor) -> None:
    """Access ends at once."""
    olga.go("Data sets")
    olga.follow("Patients of the town")
    olga.follow("Manage")
    olga.follow("Permissions")
    olga.press("Revoke", within=olga.main.locator(".card", has_text="Ana"))
    olga.reads("Ended grants", "Revoked")
