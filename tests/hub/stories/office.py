"""What the administrator, the steward and somebody without a role do in the stories."""

from __future__ import annotations

from tests.hub.stories.town import PASSWORD, Town, Visitor

ALMA, OLGA, ANA, SAM, ROSA = (f"{name}@example.org" for name in ("alma", "olga", "ana", "sam", "rosa"))
ROLES = {OLGA: "Data owner", ANA: "Analyst", SAM: "Steward", ROSA: ""}


def sets_up(town: Town) -> tuple[Visitor, dict[str, str]]:
    """The administrator comes by the first link and invites everybody: their links."""
    alma = town.visitor("Alma")
    alma.reads("Share what the data says, not the data.")
    alma.type_address(town.first_link)
    alma.fill("E-mail address", ALMA)
    joins(alma, "Alma")
    invited = {}
    for email, role in ROLES.items():
        alma.go("People")
        alma.follow("Invite a person")
        alma.fill("E-mail address", email)
        for box in alma.main.get_by_role("checkbox").all():
            box.uncheck()
        if role:
            alma.tick(role)
        alma.press("Make the link")
        invited[email] = town.reachable(alma.page.locator("#link").inner_text())
        alma.follow("Done")
    alma.reads("Open invitations", *ROLES)
    alma.go("Settings")
    alma.reads("All settings", "tick_ms")
    alma.go("Audit log")
    alma.reads("Person invited", "Person joined")
    verifies(alma)
    return alma, invited


def joins(somebody: Visitor, name: str) -> None:
    """The form behind a link: a name and a password."""
    somebody.fill("Name", name)
    somebody.fill("New password", PASSWORD)
    somebody.fill("The password once more", PASSWORD)
    somebody.press("Save and sign in")
    somebody.reads("Hello, %(name)s", name=name)


def arrives(town: Town, link: str, name: str, *, expected: tuple[str, ...] = ()) -> Visitor:
    """Somebody takes up an invitation."""
    somebody = town.visitor(name, expected=expected)
    somebody.type_address(link)
    joins(somebody, name)
    return somebody


def verifies(somebody: Visitor) -> None:
    """The chain of the trail is whole."""
    somebody.press("Verify")
    somebody.reads("Every entry was checked: none was changed, dropped or rolled back.")


def is_shown(sam: Visitor) -> None:
    """The steward reads what was shown to them."""
    sam.go("Answers")
    sam.follow("Shown to me")
    sam.follow("Care by sex")
    sam.reads("ε = 0.1", "Asked by", "Ana", "care paths")
    assert not sam.has("Name of the answer"), "an answer of somebody else is not renamed"


def looks_after(sam: Visitor) -> None:
    """What was shown by somebody whose grant is revoked is not shown any more; an alert, and the trail by filters."""
    sam.go("Answers")
    sam.follow("Shown to me")
    assert "Care by sex" not in sam.main.inner_text()
    sam.go("Overview")
    sam.follow("Alerts")
    sam.reads("Two queries that differ by a few people", "age >= 40", "age >= 41")
    sam.press("Acknowledge")
    sam.reads("Acknowledged.", "No open alerts")
    sam.go("Audit log")
    sam.unfold("Filters")
    sam.fill("Person", ANA)
    sam.fill("Action", "question.ask")
    sam.fill("Outcome", "denied")
    sam.press("Show")
    lines = sam.main.locator("tbody tr")
    assert lines.count() == 1, "one question was denied: the one after the grant was revoked"
    assert "once more" in lines.first.inner_text()
    sam.follow("Show everything")
    verifies(sam)


def sees_what_everybody_sees(rosa: Visitor) -> None:
    """No role: the catalogue, one's own account and trail, and nothing of anybody's."""
    assert all(map(rosa.is_offered, ("Overview", "Data sets", "Requests", "Answers")))
    assert not any(map(rosa.is_offered, ("Ask in SQL", "People", "Audit log", "Settings", "Populations")))
    rosa.go("Data sets")
    rosa.follow("Patients of the town")
    rosa.reads("You may not query it yet", "the register takes adults")
    assert not any(each in rosa.main.inner_text() for each in rosa.told("Charges"))
    rosa.page.goto(rosa.page.url.split("/datasets")[0] + "/people")
    rosa.look()
    rosa.reads("You may not do this")
    rosa.follow("To the first page")
    rosa.log_out()
    rosa.reads("People come here by invitation. Ask an administrator of this hub for one.")
