"""A hub that cheats: what it asks is refused or charged for what it is, and its transcript can be simulated. Broken twins are
caught: blinded encryption, and noise of the hub alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.crypto import WrongKey
from cloister.ledger import Ledger
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.tables import Aggregate, Aggregation, Base, Column, Compare, Extended, Filtered, Literal, Relation, Stacked
from cloister.tables.engines.noised import Cells, Combination, Integers, KeyCodes, NoisedRequest
from cloister.tables.engines.row_sums import Fit, RowSums
from cloister.tables.expression.scalars import Add, Case, Const, Ln, Multiply, Ref, Truth
from cloister.together import Journal, Marginal, Paillier, Sealer
from cloister.together.accounting import cost_of
from cloister.together.plan import Plan
from cloister.together.sealed.batches import Batch, pad_sums, pages_of
from cloister.together.sealed.holder import KeyHolder, SealedPlan
from cloister.together.sealed.sums import SumReader
from cloister.together.sealed.table import SealedSource
from tests.together.sealed.cells import AGES, MUCH, ages, asked, holder_of, panel

ALL = ((0, 8),)
ONE = KeyCodes(0, 1)
SEX = AGES.columns["sex"]
WOMEN = Compare("=", Column("sex"), Literal("F"))
SUM = Aggregate("s", "sum", (("age", 0),))


def request(scale: Any = 730, coefficient: int = 1, **other: Any) -> NoisedRequest:
    """The sum of ages, with noise; ε is 90·coefficient/scale."""
    total = Integers("s", Combination((("s", coefficient),)), DiscreteLaplace(scale=scale))
    given = {"table": "people", "aggregations": (Aggregation(None, aggregates=(SUM,)),), "cells": Cells(), **other}
    return NoisedRequest(integers=(total,), **given)


class Recording:
    """A key holder, and its answers."""

    def __init__(self, holder: KeyHolder) -> None:
        self.holder, self.answers = holder, list[bytes]()
        self.accept, self.agreed = holder.accept, holder.agreed

    def answer(self, text: bytes) -> bytes:
        self.answers.append(self.holder.answer(text))
        return self.answers[-1]


def read(answer: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(answer, dtype="<u8").astype(np.uint64)


READER = SumReader(AGES)


def seen(batch: Batch, what: NoisedRequest, answer: bytes, ranges: Any = ALL) -> int:
    """What the hub learns: the map of the sum of masked cells, less the answer."""
    total = READER.integers(what, lambda place: batch.sums(place, ranges).view(np.int64))
    return int((total - read(answer)).view(np.int64)[0])


def test_a_charge_is_drawn_for_once_and_for_one_plan(tmp_path: Path) -> None:
    holder = holder_of(cl.PureDP(10))
    batch = ages(tmp_path, holder)
    rows = (batch.head.id, ALL)
    first = holder.answer(asked(request(90), rows))
    assert holder.answer(asked(request(90), rows)) == first
    assert str(holder.spent("patients")) == "ε = 1"
    for other in (asked(request(91), rows), asked(request(90), (batch.head.id, ((0, 4),)))):
        with pytest.raises(cl.UnsupportedQuery, match="another plan was asked under its charge"):
            holder.answer(other)
    with pytest.raises(cl.UnsupportedQuery, match="no charge"):
        holder.answer(asked(request(90), rows, charge=""))
    assert str(holder.spent("patients")) == "ε = 1"


def test_multiples_and_subsets_cost_what_they_tell(tmp_path: Path) -> None:
    holder = holder_of(cl.PureDP(20))
    batch = ages(tmp_path, holder)
    rows = (batch.head.id, ALL)
    with pytest.raises(cl.BudgetExceeded, match="it costs ε = 1000"):
        holder.answer(asked(request(90, 1000), rows))
    holder.answer(asked(request(90, 10), rows, charge="10"))
    assert str(holder.spent("patients")) == "ε = 10"
    for charge, upper in (("a", 8), ("b", 7)):  # all rows, and all but one
        holder.answer(asked(request(90), (batch.head.id, ((0, upper),)), charge=charge))
    assert str(holder.spent("patients")) == "ε = 12"
    differences = {
        seen(batch, request(90), holder.answer(asked(request(900), (batch.head.id, ((0, 8),)), charge=f"c{n}")))
        for n in range(20)
    }
    assert len(differences) > 15  # each charge has noise of its own
    assert str(holder.spent("patients")) == "ε = 14"


def of_women(computed: Any, scale: Any = 90, table: Any = AGES.table, **other: Any) -> NoisedRequest:
    """The sum of what is computed of women's rows."""
    base = Filtered(source=Base(name="people", table=table), where=WOMEN)
    made = Extended(source=base, scalars=(("c", computed),))
    total = Aggregation(None, aggregates=(Aggregate("s", "sum", (("c", 0),)),))
    return replace(request(scale, aggregations=(total,), **other), table=made)


def test_the_key_holder_bounds_what_is_computed_by_itself(tmp_path: Path) -> None:
    """A hub that declares narrower columns, takes multiples or another formula, or says fewer groups: all is worked out of the
    format that the sealed key is bound to, and charged or refused by that."""
    holder = holder_of(cl.PureDP(20))
    batch = ages(tmp_path, holder)
    rows, age = (batch.head.id, ALL), Ref("age")
    narrow = cl.PrivateTable({"age": [17], "sex": ["F"]}, {**AGES.columns, "age": cl.Integer(17, 18)})
    twice = of_women(Add(age, age), table=narrow)
    hubs = twice.table
    assert isinstance(hubs, Relation)
    assert str(cost_of(twice, hubs)) == "ε = 0.4"  # as the hub would have it: 36/90
    with pytest.raises(cl.BudgetExceeded, match="it costs ε = 1000"):
        holder.answer(asked(of_women(Multiply(age, Case(((WOMEN, Const(1000)),), Const(1))), table=narrow), rows))
    by_c = (Aggregation(None, keys=("c",), aggregates=(SUM,)),)
    for cheat, why in (
        (of_women(Case(((Compare(">", Column("age"), Literal(40)), age),), Const(0))), r"by=\['sex', 'age'\]"),
        (of_women(Multiply(age, age)), r"squares=\['age'\]"),
        (of_women(Ref("pay"), table=cl.PrivateTable({"pay": [1], "sex": ["F"]}, {"pay": cl.Integer(0, 1), "sex": SEX})), "'pay'"),
        (of_women(Ln(age)), "may differ"),
        (replace(twice, table=Stacked(sources=(hubs, hubs))), "A join, a union"),
        (replace(of_women(Truth(WOMEN)), aggregations=by_c, cells=Cells((ONE,))), "not the groups of its keys"),
    ):
        for ask in (holder.agreed, holder.answer):
            with pytest.raises((cl.UnsupportedQuery, cl.UnknownColumn), match=why):
                ask(asked(cheat, rows))
    text = asked(of_women(Add(age, Const(1))), rows)
    for old, new in ((b"extended", b"Extended"), (b"ref", b"sqrt")):
        assert old in text
        with pytest.raises(cl.UnsupportedQuery):
            holder.agreed(text.replace(old, new))
    assert holder.spent("patients") == cl.PureDP(0)
    total = seen(batch, twice, holder.answer(asked(twice, rows)))
    assert str(holder.spent("patients")) == "ε = 2"  # 180/90
    assert abs(total - 100) < 90 * 40
    with pytest.raises(cl.UnsupportedQuery, match="another plan was asked under its charge"):
        holder.answer(asked(of_women(Multiply(age, Const(2))), rows))
    assert str(holder.spent("patients")) == "ε = 2"


def test_a_sum_over_rows_is_refused_before_a_charge(tmp_path: Path) -> None:
    """The steps of a descent read rows one by one; a key holder that agreed would charge them, and have nothing to say."""
    holder = holder_of(cl.ZCDP(100))
    columns = {**AGES.columns, "age": cl.Integer(17, 90)}
    fit = Fit.of(columns, ("age",), "sex", slope=1.0, most=Fraction(1))
    steps = Integers("c", RowSums(fit=fit, stage="classes"), DiscreteGaussian(scale=3000))
    text = asked(
        NoisedRequest(table="people", aggregations=(), integers=(steps,), cells=Cells()), (ages(tmp_path, holder).head.id, ALL)
    )
    for ask in (holder.agreed, holder.answer):
        with pytest.raises(cl.UnsupportedQuery, match="not linear"):
            ask(text)
    assert holder.spent("patients") == cl.ZCDP(0)


def test_the_places_of_a_category_in_a_list_are_no_polynomial() -> None:
    """z, x, y in the place of x, y, z: by what becomes of the first two, the third would be moved beyond the list."""
    wards = {**AGES.columns, "ward": cl.Category(["x", "y", "z"])}
    form = replace(AGES, columns=wards, marginals=[Marginal(by=["sex"], sums=["age", "ward"])])
    other = Case(((Compare("=", Column("sex"), Literal("M")), Const("z")),), Ref("ward"))
    with pytest.raises(cl.UnsupportedQuery, match=r"by=\['sex', 'ward'\]"):
        SumReader(form).needed(of_women(other, table=form.table))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([("id", ((0, 4), (3, 8)))], "twice"),
        ([("id", ALL), ("id", ALL)], "twice"),
        ([("id", ((4, 8), (0, 4)))], "twice"),
        ([("id", ((-4, 4),))], "twice"),
        ([("id", ((0, 9),))], "don't have"),
        ([("0" * 64, ALL)], "not known"),
        ([("../../key", ALL)], "not known"),
        ([], "there are none"),
    ],
)
def test_each_row_counts_once_and_none_that_there_is_not(tmp_path: Path, rows: list[Any], why: str) -> None:
    holder = holder_of(cl.PureDP(10))
    batch = ages(tmp_path, holder)
    given = [(batch.head.id if name == "id" else name, ranges) for name, ranges in rows]
    with pytest.raises(cl.UnsupportedQuery, match=why):
        holder.answer(asked(request(), *given))
    assert holder.spent("patients") == cl.PureDP(0)


def test_a_header_that_says_other_bounds_opens_no_key(tmp_path: Path) -> None:
    """With ages up to 91 declared as numbers up to 1 a sum would be charged a ninetieth."""
    holder = holder_of()
    head = ages(tmp_path, holder).head
    for old, new in (
        (b'"high":90', b'"high":18'),
        (b'"patients"', b'"patientz"'),
        (b'"rows":8', b'"rows":9'),
        (b'"overlap":1', b'"overlap":0'),
    ):
        assert old in head.data
        with pytest.raises((WrongKey, cl.InvalidDeclaration)):
            holder.accept(head.data.replace(old, new))
    with pytest.raises(cl.AccessDenied, match="no budget for the people 'patients'"):
        KeyHolder(key=bytes(32), journal=Journal(tmp_path / "j")).accept(
            ages(tmp_path, KeyHolder(key=bytes(32), journal=Journal(tmp_path / "k"), budgets={"patients": MUCH})).head.data
        )


def test_the_key_holder_limits_a_day_and_refuses_what_is_no_plan(tmp_path: Path) -> None:
    noted: list[str] = []
    holder = holder_of(cl.PureDP(10), a_day=2, note=lambda event, details: noted.append(event))
    rows = (ages(tmp_path, holder).head.id, ALL)
    text = asked(request(90), rows)
    holder.agreed(text)
    for wrong in (b"", b"[]", b'{"plan": 1, "rows": []}', json.dumps(json.loads(text)).encode(), text.replace(b"8]", b"8.0]")):
        with pytest.raises(cl.UnsupportedQuery, match="form is wrong"):
            holder.agreed(wrong)
    square = Aggregation(None, aggregates=(Aggregate("s", "sum", (("age", 0), ("age", 0))),))
    with pytest.raises(cl.UnsupportedQuery, match=r"squares=\['age'\]"):
        holder.agreed(asked(request(aggregations=(square,)), rows))
    for charge in "ab":
        holder.answer(asked(request(90), rows, charge=charge))
    with pytest.raises(cl.AccessDenied, match="2 charges a day"):
        holder.answer(asked(request(90), rows, charge="c"))
    assert noted == ["accepted", "charged", "charged"]


def test_a_clock_that_jumps_opens_nothing_that_had_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set back, it neither brings a policy's last day again nor frees charges of the day; set forward, it ends sooner and keeps
    the budget."""
    days = 0

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(days=days)

    monkeypatch.setattr("cloister.together.sealed.holder.datetime", Jumping)
    yesterday = str(datetime.now(UTC).date() - timedelta(days=1))
    holder = holder_of(cl.PureDP(10), a_day=2)
    sealer = Sealer(replace(AGES, policy={"retention": yesterday}), holder.public)
    batch = Batch(sealer.seal({"age": [20, 30], "sex": ["F", "M"]}, tmp_path / "a.masked"))
    holder.accept(batch.head.data)
    ended, rows = (batch.head.id, ALL), (ages(tmp_path, holder).head.id, ALL)
    days = -5  # before any charge says otherwise, its clock is all that it has
    holder.answer(asked(request(90), ended, charge="a"))
    with pytest.raises(cl.AccessDenied, match="policy ended"):
        holder.answer(asked(request(90), ended, charge="b"))
    holder.answer(asked(request(90), rows, charge="c"))
    days = -400
    with pytest.raises(cl.AccessDenied, match="2 charges a day"):
        holder.answer(asked(request(90), rows, charge="d"))
    days = 400
    with pytest.raises(cl.AccessDenied, match="policy ended"):
        holder.answer(asked(request(90), ended, charge="e"))
    for charge in "fghijklm":
        holder.answer(asked(request(90), rows, charge=charge))
    with pytest.raises(cl.BudgetExceeded):
        holder.answer(asked(request(90), rows, charge="n"))


def test_what_a_hub_sends_without_end_fills_no_disk(tmp_path: Path) -> None:
    """Refused questions, and batches that a hub makes itself: it knows the key to which they are sealed."""
    folder = tmp_path / "charges"
    holder = holder_of(cl.PureDP(10), key=bytes(32), journal=Journal(folder), most_batches=3, a_day=1)
    rows = (ages(tmp_path, holder).head.id, ALL)
    holder.answer(asked(request(90), rows, charge="a"))
    before = {*folder.rglob("*")}
    for number in range(20):
        with pytest.raises(cl.AccessDenied, match="1 charges a day"):
            holder.answer(asked(request(90), rows, charge=f"more {number}"))
    assert {*folder.rglob("*")} == before, "no folder for a question that was refused"
    for _ in range(2):
        ages(tmp_path, holder)
    for _ in range(3):
        with pytest.raises(cl.AccessDenied, match="it keeps 3 already"):
            ages(tmp_path, holder)
    assert len(list((folder / "batches").iterdir())) == 3


def test_a_journal_from_an_old_copy_gives_no_second_draw(tmp_path: Path) -> None:
    batch = None
    for copy in ("first", "second"):
        with Ledger(tmp_path / "ledger.db") as ledger:
            holder = KeyHolder(key=bytes(32), budgets={"patients": MUCH}, ledger=ledger, journal=Journal(tmp_path / copy))
            batch = batch or ages(tmp_path, holder)
            holder.accept(batch.head.data)
            text = asked(request(), (batch.head.id, ALL))
            if copy == "first":
                assert holder.answer(text) == holder.answer(text)
                continue
            with pytest.raises(cl.EngineError, match="it answered under this charge before"):
                holder.answer(text)
    with pytest.raises(cl.InvalidDeclaration, match="no journal"):
        KeyHolder(key=bytes(32))


def test_a_charge_that_was_never_answered_is_for_its_own_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key holder stops after it reserved for a cheap plan, and its journal, or then its ledger, comes from an old copy."""
    ledger, random = Ledger(), Random.deterministic(3)
    one, other = (
        KeyHolder(key=bytes(32), budgets={"patients": MUCH}, ledger=ledger, journal=Journal(tmp_path / name), random=random)
        for name in ("one", "other")
    )
    batch = ages(tmp_path, one)
    other.accept(batch.head.data)
    rows = (batch.head.id, ALL)
    monkeypatch.setattr(one, "_drawn", lambda asked: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        one.answer(asked(request(9000), rows))
    monkeypatch.undo()
    for plan in (request(9), request(9000)):
        with pytest.raises(cl.EngineError, match="under this charge before"):
            other.answer(asked(plan, rows))
    first = one.answer(asked(request(9000), rows))
    assert one.answer(asked(request(9000), rows)) == first
    assert len(ledger.charges("patients")) == 1
    taken_back = KeyHolder(key=bytes(32), ledger=ledger, journal=one.journal)  # no budget in its settings any more
    with pytest.raises(cl.AccessDenied, match="no budget for the people 'patients'"):
        taken_back.agreed(asked(request(9000), rows))
    one.ledger = Ledger()
    one.ledger.open("patients", MUCH, who="owner")
    with pytest.raises(cl.EngineError, match="under this charge before"):
        one.answer(asked(request(9000), rows))


def test_what_is_charged_is_noted_with_its_purpose_and_rows_that_lie_apart_cost_their_pages(tmp_path: Path) -> None:
    noted: list[dict[str, str]] = []
    holder = holder_of(note=lambda event, details: noted.append(details))
    batch = ages(tmp_path, holder)
    plan = Plan(request=request().under("7").canonical(), token="t", purpose="a report", who="Ada")
    holder.answer(SealedPlan(plan=plan, rows=((batch.head.id, ALL),)).text)
    assert (noted[-1]["purpose"], noted[-1]["who"]) == ("a report", "Ada")
    apart = tuple((at, at + 1) for at in range(1, 4000, 2))
    assert (pad_sums(bytes(32), AGES, 0, apart) == sum(pad_sums(bytes(32), AGES, 0, (each,)) for each in apart)).all()
    assert {page: parts[-1][1] for page, parts in pages_of(apart).items()} == {0: 1024, 1: 1024, 2: 1024, 3: 928}


# ── transcripts ──────────────────────────────────────────────────────────────────────────────────


def test_what_the_hub_sees_is_simulated_from_a_noisy_sum_alone(tmp_path: Path) -> None:
    """The simulator is given z, draws uniform cells and says r = A·Σc − z: the hub finds the same z in both transcripts, and the
    bytes of the real one, cells and answers, look as drawn as those of the simulated one (chi-square, a false alarm once in 10⁷).
    """
    holder, drawn = holder_of(), Random.deterministic(9)
    batch = ages(tmp_path, holder, {"age": [90] * 2000, "sex": ["M"] * 2000})
    every, what = ((0, 2000),), request(90)
    answers = [holder.answer(asked(what, (batch.head.id, every), charge=charge)) for charge in "abc"]
    simulated = drawn.words(2000 * 9).astype(np.uint64).reshape(2000, 9)
    for answer in answers:
        z = seen(batch, what, answer, every)
        assert abs(z - 180_000) < 90 * 40
        total = READER.integers(what, lambda _: simulated.sum(axis=0, dtype=np.uint64).view(np.int64))
        r = (total - np.array([z], dtype=np.int64).view(np.uint64)).tobytes()
        assert int((total - read(r)).view(np.int64)[0]) == z
    assert len(set(answers)) == 3
    real = batch.path.read_bytes()[len(batch.head.data) :] + b"".join(answers)
    for text in (real, simulated.tobytes()):
        counts = np.bincount(np.frombuffer(text, dtype=np.uint8), minlength=256)
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 255 + 5.5 * (2 * 255) ** 0.5


def test_a_release_less_the_key_holders_noise_still_has_the_hubs(tmp_path: Path) -> None:
    """What the key holder knows of a release is its own noise. What is left has the whole noise of the hub: 4,001 numbers, whose
    variance is within a tenth of its law's but for once in 10⁶."""
    holder = Recording(holder_of(cl.PureDP(10)))
    panel(tmp_path, holder.holder)
    table = cl.SealedTable(tmp_path, holder)
    with cl.Session({"people": table}, budget=cl.PureDP(10), random=Random.deterministic(1)) as session:
        answer = session.sql("SELECT wealth, COUNT(*) AS n FROM people GROUP BY wealth", spend="0.1")
    source, law = table.source, DiscreteLaplace(scale=10)
    assert isinstance(source, SealedSource)
    opened = (source.sums(2).view(np.uint64) - read(holder.answers[0])).view(np.int64)[
        :-1
    ]  # Σx + η; the last cell is of no value
    left = np.array(answer.to_pydict()["n"]) - opened[np.array(answer.to_pydict()["wealth"])]
    assert 0.8 < left.var() / law.variance < 1.2


# ── broken twins ─────────────────────────────────────────────────────────────────────────────────


def test_blinded_encryption_is_right_for_an_honest_hub_alone() -> None:
    """The twin: the hub blinds Enc(x + r), the key holder opens, adds η and sends it back. With Enc(1000·x + r) the noise is in
    the last digits, and one charge of ε = 1 gives x away. The key holder sees a uniform number either way."""
    keys, drawn = Paillier.generate(512, insecure=True), Random.deterministic(6)
    x, law, found = 12_345, DiscreteLaplace(scale=90), []
    for multiple in (1, 1000):
        blind = int(drawn.words(1)[0]) >> 1
        sent = keys.public.encrypt([x]) * multiple + keys.public.encrypt([blind])
        opened = int(keys.decrypt(sent)[0]) + int(law.sample(1, random=drawn)[0])
        found.append(round((opened - blind) / multiple))
    assert found[1] == x != found[0]


def test_noise_of_the_hub_alone_gives_everything_to_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a key holder that forgets η. What the hub computes before it adds its own noise is exact, for nothing."""
    holder = holder_of(cl.PureDP(1))
    batch = ages(tmp_path, holder)
    honest = seen(batch, request(900), holder.answer(asked(request(900), (batch.head.id, ALL), charge="1")))
    monkeypatch.setattr("cloister.together.sealed.holder.noise_of", lambda request, random: np.zeros(1, dtype=np.uint64))
    twin = seen(batch, request(900), holder.answer(asked(request(900), (batch.head.id, ALL), charge="2")))
    assert twin == 200 != honest
