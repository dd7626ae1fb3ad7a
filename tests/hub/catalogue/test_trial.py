"""Before a table opens its owner learns what of the file does not fit, and nobody else does."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.trail import AuditLine
from tests.hub.catalogue.world import FORM, Sender, World, text_of

EVIL = "<script>alert(1)</script>"
SECRET = "kestrel-71453"
ROWS = f"""age,sex,🏔 <b>note</b>,pay
30,F,x,100
40,M,x,200
200,F,x,100
200,F,x,-5
201,F,x,5
41,F,x
42,{EVIL},x,{SECRET}
43,{"Q" * 300_000},x,a\u202eb
44,,x,
"""


@pytest.fixture
def number(ada: Sender) -> str:
    """An upload that was declared, and that does not fit."""
    found = ada.arrival(ROWS.encode())
    assert ada.declare(found, **FORM).status_code == 303
    return found


def read(ada: Sender, number: str) -> str:
    assert ada.post(f"/register/{number}/trial", f"/register/{number}/review").status_code == 303
    return ada.get(f"/register/{number}/trial").text


def test_the_owner_sees_what_does_not_fit_before_the_table_opens(world: World, ada: Sender, number: str) -> None:
    assert "Make a trial reading" in ada.get(f"/register/{number}/review").text
    assert ada.get(f"/register/{number}/trial").headers["location"] == f"/register/{number}/review"
    page = read(ada, number)
    told = text_of(page)
    assert "Rows read 8 Malformed lines 1" in told
    assert "1 line is not a row. 3 columns have values that do not fit." in told
    assert "3 200 × 2 201 × 1" in told
    assert f"2 {EVIL} × 1 {'Q' * 80}… × 1" in told
    assert EVIL not in page
    assert f"{SECRET} × 1" in told
    assert "a⟨U+202E⟩b × 1" in told
    assert "1 -5 × 1" in told
    assert f'href="/register/{number}#f-c3_kind"' in page
    assert 'id="f-c3_kind"' in ada.get(f"/register/{number}").text
    assert "<b>note</b>" not in page
    assert world.hub.ledger.populations() == []  # nothing was opened, so nothing was charged


def test_what_is_mended_is_read_again(world: World, ada: Sender, number: str) -> None:
    read(ada, number)
    assert "The declaration has changed since" not in ada.get(f"/register/{number}/trial").text
    ada.declare(number, **{**FORM, "c0_high": "250"})
    assert "The declaration has changed since" in ada.get(f"/register/{number}/trial").text
    assert "has changed since the last trial reading" in ada.get(f"/register/{number}/review").text
    assert "200 × 2" not in text_of(read(ada, number))
    assert len(world.rows(OwnerView)) == 1
    assert "2 columns have values that do not fit" in text_of(ada.get(f"/register/{number}/review").text)
    shown = ada.post(f"/register/{number}/rows", f"/register/{number}", **FORM).text
    assert shown.count("<td>x</td>") == 8


def test_nobody_else_sees_it_and_the_audit_log_says_only_that_it_was_made(world: World, ada: Sender, number: str) -> None:
    read(ada, number)
    for roles in ("owner", "analyst", "steward", "administrator"):
        other = world.somebody(f"{roles}@example.org", roles)
        assert other.get(f"/register/{number}/trial").status_code in (403, 404)
        assert other.post(f"/register/{number}/trial", "/").status_code in (403, 404)
    [line] = [each for each in world.rows(AuditLine) if each.action == "dataset.trial"]
    assert (line.object, set(line.details) - {"via", "address"}) == (number, set())
    assert not any(SECRET in str(each.details) for each in world.rows(AuditLine))
    [view] = world.rows(OwnerView)
    assert SECRET.encode() not in view.wrapped
    assert SECRET not in str(view.order)


@pytest.mark.parametrize("how", ["open", "discard", "old"])
def test_it_is_gone_with_the_upload(world: World, ada: Sender, number: str, how: str) -> None:
    read(ada, number)
    if how == "old":
        from cloister.hub.platform.catalogue.arrivals import forget_old

        world.clock.move(hours=25)
        assert forget_old(world.hub) == 1
    else:
        assert ada.post(f"/register/{number}/{how}", "/register").status_code == 303
    with world.hub.database.reading() as db:
        assert db.scalars(select(OwnerView.id)).all() == []
    if how == "open":  # it can be asked, and its rows are what they were
        assert ada.api("GET", "/datasets/people/reading").json()["rows"] == 8


def test_what_may_not_be_registered_is_not_shown(world: World, ada: Sender, number: str) -> None:
    """The decision is made anew at each look."""
    read(ada, number)
    world.register(name="people", source=[b"age,sex,town,pay\n1,F,x,3\n"])
    assert "200 × 2" in text_of(ada.get(f"/register/{number}/trial").text)
    ada.declare(number, **{**FORM, "c0_low": "x"})
    answer = ada.get(f"/register/{number}/trial")
    assert answer.status_code == 422
    assert "200 × 2" not in text_of(answer.text)


def test_of_a_public_table_there_is_nothing_to_tell(world: World, ada: Sender) -> None:
    number = ada.arrival(b"town,people\nDelft,106000\n", "towns.csv")
    ada.declare(number, title="Towns", name="towns", public="yes", understood="yes", epsilon="1", measure="epsilon")
    assert "Does the file fit" not in ada.get(f"/register/{number}/review").text
    answer = ada.post(f"/register/{number}/trial", f"/register/{number}/review")
    assert answer.status_code == 409
