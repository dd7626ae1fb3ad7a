"""A staff table on its way out: names dropped, hashed, drawn anew, made coarser, torn in two; and what breaks each step.

python examples/learn_sanitising.py
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cloister.anonymize import Anonymizer, Attack, Hierarchy, KAnonymity, LDiversity, attack_tables, risk
from cloister.anonymize.attackers import intersection, target_of
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.perturbing import Anatomized, Anatomy, BestFit, Pseudonyms, dictionary_attack
from cloister.noise import Random

STAFF: dict[str, list[Any]] = {
    "name": ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hal", "Ida", "Jan", "Kim", "Leo"],
    "age": [23, 24, 26, 31, 33, 35, 42, 44, 47, 53, 56, 59],
    "sex": list("FMFMFMFMFMFM"),
    "town": ["Delft", "Gouda", "Delft", "Gouda", "Delft", "Leiden", "Leiden", "Gouda", "Delft", "Leiden", "Gouda", "Leiden"],
    "absent": ["flu", "injury", "flu", "injury", "flu", "burnout", "burnout", "injury", "burnout", "injury", "flu", "burnout"],
}
KNOWN = ("age", "sex", "town")
"""What a colleague knows of everybody."""
HIERARCHIES = {"age": Hierarchy.intervals(10, 20), "sex": Hierarchy.flat(), "town": Hierarchy.flat()}


def main() -> None:
    """Step by step."""
    dropped = {name: column for name, column in STAFF.items() if name != "name"}
    linkage = attack_tables(STAFF, dropped, quasi=KNOWN, sensitive=["absent"], learning=False)[0]
    print(f"names dropped: k = {risk(dropped, quasi=KNOWN).k}; {linkage.sentence}\n")

    keyed = Pseudonyms.with_new_key(purpose="staff 2026")
    for what, made in (("hashed", unkeyed), ("hashed with a key", keyed.of)):
        found = dictionary_attack(map(made, STAFF["name"]), [*STAFF["name"], "Mia", "Noa"], unkeyed)
        print(f"names {what}: {len(found)} of {len(STAFF['name'])} are found in a directory")

    table = employees()
    drawn = BestFit(columns=["age", "pay"], bounds={"age": (16, 70), "pay": (0, 20_000)}).apply(table)
    print(f"\nage and pay of {len(table['pay']):,} drawn anew (pay: {drawn.fits['pay'].chosen.family}):")  # type: ignore[union-attr]
    for words, frame in (("before", table), ("after", drawn.frame)):
        together = np.corrcoef(frame["age"], frame["pay"])[0, 1]
        alone = risk(frame, quasi=["town", "job", "born"]).sample_uniques
        print(f"  {words:<6} mean pay {np.mean(frame['pay']):,.0f}, correlation {together:.2f}, alone by the rest {alone:,}")

    released, program = staff_table([KAnonymity(3)])
    print("\n3-anonymous:")
    for row, rows in sorted(Counter(zip(*released.values(), strict=True)).items()):
        print("  ", *row, "×", rows)
    for attack in program.certificate(released, learning=False).attacks[:2]:
        print(f"  {attack}")

    pieces = torn()
    print(f"\nin two tables: a reason is a person's with a chance of {pieces.probability}")
    for group in range(pieces.groups):
        ages = [age for age, own in zip(pieces.quasi["age"], pieces.quasi["group"], strict=True) if own == group]
        held = [reason for own, reason in zip(pieces.sensitive["group"], pieces.sensitive["absent"], strict=True) if own == group]
        print(f"  group {group}: people of {', '.join(map(str, ages))}; {', '.join(held)}")

    print(f"\nby sex in spring, by town in autumn:\n  {both_releases()}")


def unkeyed(name: str) -> str:
    """A hash that everybody can compute."""
    return hashlib.sha256(name.encode()).hexdigest()


def employees(rows: int = 2_000, random: Random | None = None) -> dict[str, list[Any]]:
    """Made-up employees whose pay grows with their age."""
    source = random or Random.deterministic(3)
    age = 18 + (source.below(48, rows) + source.below(48, rows)) // 2
    luck = source.below(1_000, (3 * rows)).reshape(3, rows).sum(axis=0)
    return {
        "age": age.tolist(),
        "pay": (1_200 + 60 * (age - 18) + luck).tolist(),
        "town": [("Delft", "Gouda", "Leiden")[each] for each in source.below(3, rows).tolist()],
        "job": [f"job {each}" for each in source.below(20, rows).tolist()],
        "born": [f"day {each}" for each in source.below(365, rows).tolist()],
    }


def staff_table(models: Sequence[PrivacyModel], columns: Sequence[str] = KNOWN) -> tuple[dict[str, list[Any]], Anonymizer]:
    """The twelve rows made coarser, and the program that did it."""
    program = Anonymizer(
        quasi=list(columns),
        sensitive=["absent"],
        models=models,
        hierarchies={name: HIERARCHIES[name] for name in columns},
        suppression=0,
    )
    return program.fit_transform({name: STAFF[name] for name in (*columns, "absent")}), program


def torn(random: Random | None = None) -> Anatomized:
    """Two tables: who, and what."""
    return Anatomy(quasi=list(KNOWN), sensitive="absent", l=3).apply(STAFF, random=random)


def both_releases() -> Attack:
    """Who holds both of two safe tables."""
    spring, autumn = (staff_table([KAnonymity(3), LDiversity(2)], [column])[1] for column in ("sex", "town"))
    return intersection(target_of(spring.problem_.table, spring.recoded_), autumn.recoded_, "absent")


if __name__ == "__main__":
    main()
