"""What the use of other people's purchases debits: what was named and no more, once, and nothing where it is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy import ApproxDP, Guarantee, PureDP
from cloister.session.questions.spend import less

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def table() -> cl.PrivateTable:
    rows = {"age": [30, 40] * 300, "sex": ["F", "M"] * 300, "town": ["Delft"] * 600}
    return cl.PrivateTable(
        rows, columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "town": cl.Text()}, version="1"
    )


def opened(share: Guarantee, budget: Guarantee | None = None) -> cl.Session:
    house = cl.Session({"people": table()}, budget=budget or PureDP(10), random=Random.deterministic(5))
    for who in ("ana", "bob"):
        house.ledger.allot("people", who, share, who="owner")
    return house


@pytest.fixture
def house() -> Iterator[cl.Session]:
    with opened(PureDP(1)) as found:
        yield found


def used(house: cl.Session, who: str) -> Guarantee:
    allotment = house.ledger.allotment("people", who)
    assert allotment is not None
    return less(*allotment) or PureDP(0)


@pytest.mark.parametrize(
    ("ana", "bob", "debited", "paid"),
    [
        (["1"], ["0.05"], "0.05", "1"),
        (["1"], ["0.05", "0.05"], "0.05", "1"),
        (["1"], ["0.05", "0.2", "0.1"], "0.2", "1"),
        (["0.3"], ["0.5"], "0.5", "0.5"),
        (["0.3"], ["0.2", "0.5"], "0.5", "0.5"),
        (["0.3"], ["0.3", "0.3"], "0.3", "0.3"),
        (["0.3", "0.4"], ["0.35"], "0.35", "0.4"),
    ],
)
def test_nobody_pays_more_than_the_spend_that_was_named(
    house: cl.Session, ana: list[str], bob: list[str], debited: str, paid: str
) -> None:
    for spend in ana:
        house.on_behalf("ana").sql(COUNT, spend=spend)
    for spend in bob:
        house.on_behalf("bob").sql(COUNT, spend=spend)
    assert used(house, "bob") == PureDP(debited)
    assert used(house, "ana") == PureDP(ana[-1])
    assert house.spent == PureDP(paid)
    assert house.ledger.verify() is True


def test_what_one_paid_oneself_counts_towards_the_spend(house: cl.Session) -> None:
    ana, bob = house.on_behalf("ana"), house.on_behalf("bob")
    bob.sql(COUNT, spend="0.2")
    ana.sql(COUNT, spend="0.9")
    assert used(house, "ana") == PureDP("0.9"), "0.2 that bob paid, and 0.7"
    bob.sql(COUNT, spend="0.5")
    assert used(house, "bob") == PureDP("0.5"), "0.2 of one's own, and 0.3 of ana's"
    bob.sql(COUNT, spend="0.1")
    assert used(house, "bob") == PureDP("0.5")
    assert house.spent == PureDP("0.9")


def test_a_stored_answer_debits_the_spend_that_is_named_and_all_where_none_is(house: cl.Session) -> None:
    house.on_behalf("ana").sql(COUNT, spend="0.4")
    bob, eve = house.on_behalf("bob"), house.on_behalf("eve")
    house.ledger.allot("people", "eve", PureDP(1), who="owner")
    assert bob.stored(COUNT, spend="0.1") is not None
    assert used(house, "bob") == PureDP("0.1")
    assert eve.stored(COUNT) is not None
    assert used(house, "eve") == PureDP("0.4")


def test_what_one_was_given_is_given_again_for_nothing(house: cl.Session) -> None:
    ana, bob, eve = (house.on_behalf(each) for each in ("ana", "bob", "eve"))
    bob.sql(COUNT, spend="0.2")
    ana.sql(COUNT, spend="0.9")
    eve.sql(COUNT, spend="0.1")
    for name, share in (("bob", "0.2"), ("eve", "0.1"), ("zoe", "0.3")):
        house.ledger.allot("people", name, PureDP(share), who="owner")
    for who, debited in ((bob, "0.2"), (eve, "0.1")):
        assert who.stored(COUNT) is not None
        assert used(house, who.who) == PureDP(debited)
    zoe = house.on_behalf("zoe")
    with pytest.raises(cl.BudgetExceeded, match="it was charged to others, its use counts against your own share") as refusal:
        zoe.stored(COUNT)
    assert "ε = 0.3" in str(refusal.value)
    assert zoe.stored(COUNT, spend="0.3") is not None, "as the refusal says"
    assert used(house, "zoe") == PureDP("0.3")
    assert house.spent == PureDP("0.9")


def test_a_coarser_answer_debits_the_finer_one_up_to_the_spend(house: cl.Session) -> None:
    ana, bob = house.on_behalf("ana"), house.on_behalf("bob")
    bob.sql(BY_SEX, spend="0.1")
    ana.sql(BY_SEX, spend="1")
    bob.sql(COUNT, spend="0.05")
    assert used(house, "bob") == PureDP("0.1"), "one's own purchase is worth that much"
    bob.sql(COUNT, spend="0.3")
    assert used(house, "bob") == PureDP("0.3")
    assert house.spent == PureDP(1)


def test_a_share_that_is_too_small_for_debit_and_purchase_together_loses_nothing(house: cl.Session) -> None:
    house.on_behalf("ana").sql(COUNT, spend="0.9")
    bob, head = house.on_behalf("bob"), house.ledger.head
    with pytest.raises(cl.BudgetExceeded, match="a charge to the share for stored answers"):
        bob.sql(COUNT, spend="1.05")
    assert used(house, "bob") == PureDP(0)
    assert house.ledger.head == head
    house.ledger.allot("people", "bob", PureDP("0.2"), who="owner")
    bob.sql(COUNT, spend="0.15")
    assert used(house, "bob") == PureDP("0.15")


def test_an_empty_budget_debits_nothing() -> None:
    with opened(PureDP(1), budget=PureDP("0.9")) as house:
        house.on_behalf("ana").sql(COUNT, spend="0.9")
        with pytest.raises(cl.BudgetExceeded, match="of its budget"):
            house.on_behalf("bob").sql(COUNT, spend=1)
        assert used(house, "bob") == PureDP(0)


def test_what_cannot_be_combined_debits_what_is_used_alone() -> None:
    sql = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
    with opened(ApproxDP(3, "1e-5"), budget=ApproxDP(10, "1e-5")) as house:
        house.on_behalf("ana").sql(sql, spend=1)
        house.on_behalf("bob").sql(sql, spend=2)  # bought as a whole: two releases may show different groups
        assert house.ledger.drawn("people", "bob", house.explain(sql, spend=1).digest) == ApproxDP(0, 0)
        assert used(house, "bob").epsilon == 2  # type: ignore[union-attr]
        house.on_behalf("ana").sql(sql, spend="1.5")
        assert used(house, "ana").epsilon == PureDP("2.5").epsilon  # type: ignore[union-attr]


def test_two_requests_at_the_same_instant_debit_once(house: cl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the ledger before either writes."""
    house.on_behalf("ana").sql(COUNT, spend="0.5")
    barrier, charge = threading.Barrier(2), Ledger.charge_allotment

    def together(self: Ledger, *given: object, **named: object) -> None:
        barrier.wait(60)
        charge(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "charge_allotment", together)
    threads = [threading.Thread(target=lambda: house.on_behalf("bob").sql(COUNT, spend="0.5")) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used(house, "bob") == PureDP("0.5")
    assert house.ledger.verify() is True
