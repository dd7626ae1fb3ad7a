"""Nothing that leaves says which row of the old table a row was: neither its number nor its place, whatever made it and in
whatever kind of frame; and two releases of one table do not meet on either."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cloister.anonymize import Anonymizer, HiddenRows, KAnonymity
from cloister.anonymize.attackers import attack_tables
from cloister.anonymize.perturbing import (
    PRAM,
    AdditiveNoise,
    Anatomy,
    BestFit,
    LocalSuppression,
    Microaggregation,
    MultiplicativeNoise,
    Pseudonyms,
    RankSwap,
    RecordSwap,
    Rounding,
    Shuffle,
    TopBottomCoding,
)
from cloister.errors import InvalidParameter
from cloister.mining import hide_rules
from cloister.noise import Random

ROWS = 60
TABLE: dict[str, list[Any]] = {
    "age": [20 + place % 3 for place in range(ROWS)],
    "pay": [1000 + 10 * place for place in range(ROWS)],
    "town": ["abc"[place % 3] for place in range(ROWS)],
    "place": list(range(ROWS)),
}

MAKERS: dict[str, Callable[..., Any]] = {
    "anonymizer": lambda table, **how: Anonymizer(quasi=["age"], models=[KAnonymity(5)], **how).fit_transform(table),
    "mondrian": lambda table, **how: Anonymizer(["age"], search="mondrian", **how).fit_transform(table),
    "star": lambda table, **how: Anonymizer(["age"], suppressed="star", **how).fit_transform(table),
    "missing": lambda table, **how: Anonymizer(["age"], missing="suppress", **how).fit_transform(table),
    "microaggregation": lambda table, **how: Microaggregation(columns="pay", k=3).apply(table, **how).frame,
    "additive": lambda table, **how: AdditiveNoise(columns="pay", scale=5).apply(table, **how).frame,
    "multiplicative": lambda table, **how: MultiplicativeNoise(columns="pay", scale=0.1).apply(table, **how).frame,
    "pram": lambda table, **how: PRAM(column="town").apply(table, **how).frame,
    "rank swap": lambda table, **how: RankSwap(columns="pay").apply(table, **how).frame,
    "shuffle": lambda table, **how: Shuffle(columns="pay").apply(table, **how).frame,
    "record swap": lambda table, **how: RecordSwap(geography="town", risk="age").apply(table, **how).frame,
    "best fit": lambda table, **how: BestFit(columns="pay").apply(table, **how).frame,
    "coding": lambda table, **how: TopBottomCoding(column="pay", top=1200).apply(table, **how).frame,
    "rounding": lambda table, **how: Rounding(columns="pay", base=50).apply(table, **how),
    "suppression": lambda table, **how: LocalSuppression(quasi=["age"], k=2).apply(table, **how).frame,
    "pseudonyms": lambda table, **how: Pseudonyms(key=bytes(32)).apply(table, columns="town", **how),
}
KINDS: dict[str, Callable[[], Any]] = {
    "dict": lambda: TABLE,
    "pandas": lambda: pd.DataFrame(TABLE, index=pd.Index(range(500, 500 + ROWS), name="patient")),
    "gaps": lambda: pd.DataFrame(TABLE, index=[3 * place for place in range(ROWS)]),
    "polars": lambda: pl.DataFrame(TABLE),
    "arrow": lambda: pl.DataFrame(TABLE).to_arrow(),
}


def places(released: Any) -> list[int]:
    """The old places, in the order in which the rows left."""
    return [int(each) for each in pl.DataFrame(released)["place"].to_list() if each is not None]


@pytest.mark.filterwarnings("ignore::cloister.anonymize.HiddenRows")
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_leave_in_a_secret_order_and_numbered_afresh(maker: str, kind: str) -> None:
    """Two releases of 60 rows have the same order, or the old one, with a chance of 3 in 60!."""
    first, second = (MAKERS[maker](KINDS[kind]()) for _ in range(2))
    orders = {tuple(places(each)) for each in (first, second)} | {tuple(range(ROWS))}
    assert len(orders) == 3
    assert len({tuple(sorted(each)) for each in orders}) == 1
    if isinstance(first, pd.DataFrame):
        assert first.index.equals(pd.RangeIndex(ROWS))
        assert first.index.name is None


@pytest.mark.parametrize("maker", MAKERS)
def test_either_is_kept_by_name_alone_and_warned_of(maker: str) -> None:
    with pytest.warns(HiddenRows, match="the order of the rows stays as it is"):
        assert places(MAKERS[maker](TABLE, shuffle=False)) == list(range(ROWS))
    with pytest.warns(HiddenRows, match="the index 'patient' stays as it is"):
        kept = MAKERS[maker](KINDS["pandas"](), keep_index=True)
    assert kept.index.tolist() == [500 + place for place in places(kept)]
    with pytest.raises(InvalidParameter, match="no labels"):
        MAKERS[maker](TABLE, keep_index=True)


@pytest.mark.filterwarnings("ignore::cloister.anonymize.HiddenRows")
def test_what_was_kept_stands_in_report_and_certificate() -> None:
    frame = KINDS["gaps"]()
    kept = Anonymizer(["age"], shuffle=False, keep_index=True)
    released = kept.fit_transform(frame)
    assert kept.report_.kept[-2:] == ("the index", "the order of the rows")
    paper = kept.certificate(released, learning=False)
    assert paper.made["published as they are"].endswith("the index")
    for words in ("order of the rows", "labels of the rows"):
        assert paper.made[words].startswith("kept, as was asked for")
        assert words in paper.to_html()
    plain = Anonymizer(["age"])
    told = plain.certificate(plain.fit_transform(frame), learning=False).made
    assert told["order of the rows"] == "secret, drawn for this table"
    assert "labels of the rows" not in told


def test_positions_of_suppressed_rows_are_not_seen() -> None:
    ages = [30] * 5 + [97] + [60] * 6
    anonymizer = Anonymizer(["age"], models=[KAnonymity(3)], suppression=0.1)
    released = anonymizer.fit_transform(pd.DataFrame({"age": ages}))
    assert released.index.tolist() == list(range(11))
    assert sorted(anonymizer.rows_.tolist()) == [*range(5), *range(6, 12)]


def test_two_releases_of_one_table_do_not_join_on_the_index() -> None:
    """By `to_csv()`, joined on the index: of 3,000 rows one meets itself by chance; more than 20 do with a chance below 10⁻¹⁷."""
    numbers = np.random.default_rng(1)
    frame = pd.DataFrame({"age": numbers.integers(18, 90, 3000), "zip": numbers.integers(1000, 1400, 3000)})
    rows = []
    for quasi, other in (("age", "zip"), ("zip", "age")):
        made = Anonymizer([quasi], models=[KAnonymity(5)], suppression=0.05, identifying=[other])
        written = pd.read_csv(io.StringIO(made.fit_transform(frame).to_csv()), index_col=0)
        rows.append(pd.Series(made.rows_, index=written.index))
    both = pd.concat(rows, axis=1, join="inner")
    assert len(both) > 2500
    assert (both[0] == both[1]).sum() <= 20


def test_files_have_no_old_order_either(tmp_path: Path) -> None:
    frame = pl.DataFrame({**TABLE, "town": pl.Series(TABLE["town"], dtype=pl.Categorical)})
    frame = pl.concat([frame] * 50).with_columns(place=pl.int_range(50 * ROWS))
    frame.write_parquet(tmp_path / "old.parquet", row_group_size=100)
    for ending in ("csv", "parquet"):
        with pytest.warns(HiddenRows, match="'place'"):
            Anonymizer(["age"]).transform_file(tmp_path / "old.parquet", tmp_path / f"new.{ending}")
        new = pl.read_csv(tmp_path / "new.csv") if ending == "csv" else pl.read_parquet(tmp_path / "new.parquet")
        rows = new["place"].to_numpy()
        assert abs(np.corrcoef(rows, np.arange(len(rows)))[0, 1]) < 6 / len(rows) ** 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = Anonymizer(["age"]).fit_transform(pd.read_parquet(tmp_path / "old.parquet"))
    released.to_parquet(tmp_path / "pandas.parquet")
    import pyarrow.parquet as pq

    told = pq.read_schema(tmp_path / "pandas.parquet").pandas_metadata["index_columns"]
    assert told == [{"kind": "range", "name": None, "start": 0, "stop": len(released), "step": 1}]


@pytest.mark.parametrize("shape", ["lists", "long", "wide"])
def test_baskets_leave_in_a_secret_order_without_names(shape: str) -> None:
    """A basket has an item of its own, so that its old place can be told; the chance of the old order is 1 in 40!."""
    lists = [["beer", "crisps", f"only {place:02d}"] for place in range(40)]
    tables: dict[str, Any] = {
        "lists": lists,
        "long": {
            "basket": [f"card {place}" for place, held in enumerate(lists) for _ in held],
            "item": [name for held in lists for name in held],
        },
        "wide": {name: [name in held for held in lists] for name in sorted({name for held in lists for name in held})},
    }

    def order(found: Any) -> list[int]:
        return [int(name[5:]) for held in found.baskets.lists() for name in held if name.startswith("only")]

    asked: dict[str, Any] = {"min_support": "0.2", "min_confidence": "0.6", "method": "2.a"}
    found = hide_rules(tables[shape], [("beer", "crisps")], **asked)
    assert order(found) != list(range(40))
    assert sorted(order(found)) == list(range(40))
    assert found.linking == ()
    if shape == "long":
        assert set(found.data["basket"]) == set(range(40))
    if shape != "wide":
        assert list(found.baskets.items) == sorted(found.baskets.items)
    with pytest.warns(UserWarning, match="the order of the baskets stays as it is"):
        kept = hide_rules(tables[shape], [("beer", "crisps")], shuffle=False, keep_names=True, **asked)
    assert order(kept) == list(range(40))
    assert "the order of the baskets stays as it is" in kept.not_private
    if shape == "long":
        assert set(kept.data["basket"]) == {f"card {place}" for place in range(40)}


def test_anatomy_and_groups_stand_beside_the_rows_that_left() -> None:
    pieces = Anatomy(quasi=["place"], sensitive="town", l=3).apply(TABLE)
    assert pieces.quasi["place"] != TABLE["place"]
    done = Microaggregation(columns="pay", k=3).apply(TABLE)
    for group in set(done.groups.tolist()):
        assert len({done.frame["pay"][row] for row in np.flatnonzero(done.groups == group)}) == 1


def test_attackers_do_not_take_shuffled_rows_for_the_old_ones() -> None:
    raw = pd.DataFrame({"age": [30, 31, 60, 61] * 10, "ill": ["flu", "gout", "cold", "flu", "mumps"] * 8})
    made = Anonymizer(["age"], ["ill"], models=[KAnonymity(5)], random=Random.deterministic(1))
    released = made.fit_transform(raw)
    with pytest.raises(InvalidParameter, match="in what order"):
        attack_tables(raw, released, ["age"], ["ill"], learning=False)
    found = attack_tables(raw, released, ["age"], ["ill"], kept=made.rows_, learning=False)
    assert found[1].success == made.certificate(released, learning=False).attacks[1].success
