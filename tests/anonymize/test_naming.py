"""Labels of learnt groups: what leaves names values of rows that leave, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cloister.anonymize import Anonymizer, DeltaPresence, Hierarchy, KAnonymity, KMap, OptimalLattice
from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.naming import named_by_what_is_published
from cloister.anonymize.recoding import Recoded, RecodedColumn
from cloister.noise import Random

RARE = ("Xanthic", "Yttric", "Zircon")


def people() -> dict[str, list[Any]]:
    """Sixty rows of six towns; three of towns of their own, at ages that nobody else has, with the sex of three other towns."""
    towns = ["Nancy", "Metz", "Brest", "Lille", "Pau", "Nice"]
    return {
        "town": [towns[each % 6] for each in range(60)] + list(RARE),
        "age": [30 + each // 6 % 2 for each in range(60)] + [80, 90, 99],
        "sex": ["FM"[each % 2] for each in range(60)] + list("FMF"),
        "ill": [("flu", "gout", "cold")[each % 3] for each in range(63)],
    }


def made(**how: Any) -> Anonymizer:
    hierarchies = {
        "town": Hierarchy.learnt("sex", groups=(5, 3, 2)),
        "age": Hierarchy.of({each: [] for each in (30, 31, 80, 90, 99)}),
    }
    wanted: dict[str, Any] = {
        "quasi": ["town", "age", "sex"], "sensitive": ["ill"], "models": [KAnonymity(15)], "hierarchies": hierarchies,
        "suppression": 0.05, "weights": {"age": 20.0, "sex": 20.0},
    }  # fmt: skip
    return Anonymizer(**{**wanted, **how})


@pytest.mark.parametrize("suppressed", ["drop", "star"])
@pytest.mark.parametrize("search", ["optimal", "greedy", "topdown", "local"])
def test_no_label_names_a_value_that_only_suppressed_rows_hold(search: str, suppressed: str) -> None:
    anonymizer = made(search=search, suppressed=suppressed)
    released = anonymizer.fit_transform(people())
    assert anonymizer.report_.suppressed == 3
    labels = set(released["town"])
    assert any("|" in label for label in labels), labels
    assert not [label for label in labels for name in RARE if name in label]
    assert len(released["town"]) == (63 if suppressed == "star" else 60)
    paper = anonymizer.certificate(released, learning=False)
    assert paper.holds
    assert paper.risk.k >= 15
    assert not [name for name in RARE if name in paper.to_html() + anonymizer.report_.to_html()]


def test_what_was_named_before_named_them() -> None:
    """The fault that this mends: the same recoding, published with the labels of the search."""
    anonymizer = made()
    recoded = OptimalLattice().find(anonymizer.problem(people()))
    labels = {
        str(label) for code, label in enumerate(recoded.columns["town"].labels) if code in recoded.columns["town"].codes[:60]
    }
    assert [label for label in labels for name in RARE if name in label]


def test_classes_and_losses_are_those_of_the_search() -> None:
    anonymizer = made()
    released = anonymizer.fit_transform(people())
    searched = OptimalLattice().find(anonymizer.problem_)
    assert anonymizer.report_.score == anonymizer.problem_.metric.score(anonymizer.problem_, searched)
    assert sorted(anonymizer.recoded_.classes.sizes.tolist()) == sorted(searched.classes.sizes.tolist())
    shown = pl.DataFrame(released).group_by("town", "age", "sex").len()["len"].to_list()
    assert sorted(shown) == sorted(searched.classes.sizes.tolist())


def test_two_groups_that_would_read_alike_stay_two() -> None:
    """A group of which one value is left, beside that value on a level of its own."""
    town = EncodedColumn(name="town", codes=np.array([0, 0, 0, 0, 1], dtype=np.int32), values=["A", "B"], kind="text")
    share = np.array([0.5, 1.0])
    column = RecodedColumn(codes=np.array([0, 0, 1, 1, 1], dtype=np.int32), labels=["A", "A | B"], shares=share, widths=share)
    recoded = Recoded(columns={"town": column}, suppressed=np.array([False] * 4 + [True]))
    ladder = Ladder.of("town", ["A", "B"], [["A | B", "A | B"]])
    told = named_by_what_is_published(recoded, Encoded(rows=5, columns={"town": town}), {"town": ladder})
    assert told.columns["town"].labels == ["A", "… (1 value, group 2)"]


def test_files_that_never_are_in_memory_are_named_alike(tmp_path: Path) -> None:
    pl.DataFrame(people()).write_csv(tmp_path / "people.csv")
    made().transform_file(tmp_path / "people.csv", tmp_path / "released.csv")
    text = (tmp_path / "released.csv").read_text(encoding="utf-8")
    assert not [name for name in RARE if name in text]
    in_memory = made(shuffle=True, random=Random.deterministic(1)).fit_transform(pl.read_csv(tmp_path / "people.csv"))
    assert set(pl.read_csv(tmp_path / "released.csv")["town"]) == set(in_memory["town"])


@pytest.mark.parametrize("search", ["optimal", "greedy", "topdown", "local"])
@pytest.mark.parametrize(
    ("hierarchy", "labels"),
    [
        (Hierarchy.learnt("sex", groups=(2,)), {"Vienne | Villefranche | Vire", "Brest | Pau"}),
        (Hierarchy.masking(1), {"V***********", "*"}),
    ],
)
def test_beside_a_public_list_a_label_is_made_of_all_of_the_list(search: str, hierarchy: Hierarchy, labels: set[str]) -> None:
    """One of those in the study alone would say of others on the list that they are not in it."""
    listed: dict[str, list[Any]] = {
        "town": ["Vienne", "Vire", "Villefranche", "Brest", "Pau"] * 4,
        "sex": ["F", "F", "F", "M", "M"] * 4,
        "in_study": [True, True, False, True, False] * 4,
    }
    anonymizer = Anonymizer(
        quasi=["town"], sensitive=["sex"], models=[DeltaPresence("0.1", "0.9"), KMap(8)], search=search,
        research="in_study", suppression="0.4",
        hierarchies={"town": hierarchy},
    )  # fmt: skip
    released = anonymizer.fit_transform(listed)
    assert set(released["town"]) <= labels
