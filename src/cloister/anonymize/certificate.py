"""The certificate of an anonymised table: what was proved of it, what is left to risk, how far attackers got, and what it is not.

It is made of the table that leaves, read again as a stranger would read it, and never of what a search believes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.attackers import Attack, Target, attack
from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import Encoded, encode, tally_of
from cloister.anonymize.frames import Frame, need_polars, read_frame
from cloister.anonymize.hierarchies.ladder import MISSING, STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.models.base import Attained, PrivacyModel
from cloister.anonymize.models.presence import attained_of
from cloister.anonymize.paper import document, facts, section, signature, table
from cloister.anonymize.readings import shown
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.risks import Risk, digest_of, risk_of, risk_of_released
from cloister.anonymize.risks.words import added_warnings, alone, answer, per_cent, spelling_warnings
from cloister.anonymize.roles import check_lists
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random
from cloister.printable import escape

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d) 00:00:00\Z")

NOT_PROMISED = (
    "This table is NOT differentially private. The statements below hold only for the columns and the attackers named here.",
    "Someone who knows more about a person than the quasi-identifiers named may find that person, and may learn more about them.",
    "Another release about the same people, by anyone, can undo the protection of this one: two tables that are "
    "k-anonymous need not be so together.",
    "Versions of one table about people who come and go are such releases: what keeps their classes apart is m-invariance (Xiao "
    "and Tao 2007), and nothing here has it.",
    "Someone who knows how the table was made, and most of its rows, may learn about the rest.",
    "Models are counted for attackers who do not use the algorithm: someone who knows that it leaves as little as "
    "it can may rule values out (minimality).",
    "What the table teaches about people in general, it teaches also about people who are not in it.",
)
"""What an attacker may still learn."""


_TRIED = "the models assume that attackers do not use it; one who does was tried (minimality)"
_NOT_RUN = (
    "the models assume that attackers do not use it; one who does was not tried, since the search takes too long to run often"
)
_NOT_TOLD = "learns nothing by it that is known of: the search was not said to look at sensitive values"
"""What is assumed of an attacker's knowledge of the algorithm."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was proved of a published table, and what was tried against it."""

    models: tuple[Attained, ...]
    """Each model that was asked for, counted again on the labels that were published."""
    risk: Risk
    """Of the published table, read again."""
    risk_before: Risk
    attacks: tuple[Attack, ...]
    digest: str
    """The SHA-256 of the published table, written as CSV."""
    utility: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By metric: the loss of the raw table, and of the published one; smaller is better."""
    made: Mapping[str, str] = field(default_factory=dict)
    """How the table was made, in words."""

    @property
    def holds(self) -> bool:
        """Whether every model holds."""
        return all(each.holds for each in self.models)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "not_private": list(NOT_PROMISED),
            "holds": self.holds,
            "models": [
                {"model": m.model, "column": m.column, "asked": m.asked, "reached": m.reached, "holds": m.holds}
                for m in self.models
            ],
            "risk": self.risk.to_dict() | {"digest": self.digest},
            "risk_before": self.risk_before.to_dict(),
            "utility": {name: {"before": before, "after": after} for name, (before, after) in self.utility.items()},
            "attacks": [each.to_dict() for each in self.attacks],
            "made": dict(self.made),
            "digest": self.digest,
        }

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        lines = [
            "Certificate of an anonymised table",
            "",
            *(f"  {each}" for each in self.models),
            "",
            f"  {answer(self.risk)}",
            f"  prosecutor risk {per_cent(self.risk_before.prosecutor)} before, {per_cent(self.risk.prosecutor)} after; "
            f"marketer {per_cent(self.risk_before.marketer)} before, {per_cent(self.risk.marketer)} after",
            *(f"  {each}" for each in self._warned),
            "",
            *(f"  {each}" for each in self.attacks),
            "",
            *(f"  {each}" for each in NOT_PROMISED),
            "",
            f"  SHA-256 {self.digest}",
        ]
        return "\n".join(lines)

    def to_html(self, *, title: str = "Certificate of an anonymised table") -> str:
        """A page to read, print and sign."""
        verdict = (
            "Every model that was asked for holds, counted again on the published table." if self.holds else "A model fails."
        )
        return document(
            title,
            f"<p class='said{'' if self.holds else ' warned'}'>{escape(verdict)} {escape(answer(self.risk))}</p>",
            section("The table", facts([*self.made.items(), ("SHA-256 of the table as CSV", self.digest)])),
            section(
                "Proof",
                table(
                    ["Model", "Column", "Asked", "Reached", ""],
                    [[m.model, m.column or "", m.asked, m.reached, "holds" if m.holds else "fails"] for m in self.models],
                ),
                *(f"<p class='said warned'>{escape(each)}</p>" for each in self._warned),
            ),
            section("Risk", self._risks()),
            *([section("Information loss", self._losses())] if self.utility else []),
            section("Attack results", self._attacks()),
            section("Limits", "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in NOT_PROMISED) + "</ul>"),
            section("Signature", signature("Name", "Function", "Date", "Signature")),
        )

    @property
    def _warned(self) -> list[str]:
        return [*spelling_warnings(self.risk), *added_warnings(self.risk)]

    def _repr_html_(self) -> str:
        return self.to_html()

    def _risks(self) -> str:
        pair = (self.risk_before, self.risk)
        rows = [
            ["largest probability of finding a person who is in the table", *(per_cent(each.prosecutor) for each in pair)],
            ["share of names that are right, if all are named", *(per_cent(each.marketer) for each in pair)],
            ["rows that are the only ones of their kind", *(per_cent(alone(each)) for each in pair)],
        ]
        return table(["", "Raw table", "Published"], rows, numbers=[1, 2])

    def _losses(self) -> str:
        rows = [[name, f"{before:,.4g}", f"{after:,.4g}"] for name, (before, after) in self.utility.items()]
        return table(["Measure (smaller is better)", "Raw table", "Published"], rows, numbers=[1, 2])

    def _attacks(self) -> str:
        rows = [
            [
                each.name + (f" ({each.column})" if each.column else ""),
                per_cent(each.before),
                per_cent(each.success) + (f" ± {per_cent(each.margin)}" if each.margin else ""),
                per_cent(each.baseline),
            ]
            for each in self.attacks
        ]
        told = "".join(f"<li>{escape(each.sentence)}</li>" for each in self.attacks)
        heads = ["Attack", "Raw table", "Published", "Without the table"]
        return table(heads, rows, numbers=[1, 2, 3], caption="The share of the people of whom it succeeds.") + f"<ul>{told}</ul>"


def certify(
    raw: Encoded | Target,
    recoded: Recoded | None,
    released: Any,
    *,
    models: Sequence[PrivacyModel],
    sensitive: Sequence[str] = (),
    utility: Mapping[str, tuple[float, float]] | None = None,
    made: Mapping[str, str] | None = None,
    missing_values: Sequence[Any] = (),
    random: Random | None = None,
    **attacking: Any,
) -> Certificate:
    """The certificate of a table that is about to leave.

    Models are counted again from the labels; risk, from the frame that leaves; and the two have to agree, label by label and
    sensitive value by sensitive value, or nothing is certified. `missing_values` are what stands for a missing one.
    `attacking` is what `attack` takes: `public`, `other`, `known`, `learning`, `hierarchies`.

    >>> from cloister.anonymize.attackers import example
    >>> from cloister.anonymize.models.k import KAnonymity
    >>> target = example()
    >>> released = {"age": ["*"] * 6, "town": ["A", "A", "B", "A", "B", "B"], "disease": ["flu", "cold"] + ["gout"] * 4}
    >>> paper = certify(target, None, released, models=[KAnonymity(3)], sensitive=["disease"], learning=False)
    >>> isinstance(paper, Certificate), paper.holds, paper.risk.k, len(paper.attacks)
    (True, True, 3, 4)
    """
    if isinstance(raw, Target):
        target = raw
        raw, recoded = target.raw, target.recoded
    if recoded is None:
        raise InvalidParameter(
            "The table was not certified", why="no recoding was given", instead="certify(raw, recoded, table, …)"
        )
    check_lists(models=models, sensitive=sensitive)
    frame = read_frame(released)
    quasi = list(recoded.columns)
    tried = recoded.again is not None
    everybody = np.ones(frame.rows, dtype=bool)
    silent = frame.stands_for(everybody) - recoded.leaving.classes.rows
    found = risk_of_released(frame, quasi, [name for name in sensitive if name in frame.names], silent)
    _agree(frame, recoded, missing_values)
    as_they_are = [*found.other, *([frame.labelled] if frame.labelled else [])]
    reached = attained_of(models, recoded)
    compared = {}
    if recoded.sensitive and recoded.suppressed.any():
        compared["what classes are compared with"] = (
            "by the models, the whole table with its suppressed rows; by the risks, the rows that are published: so t, β and δ "
            "may differ between them"
        )
    if recoded.research is not None:  # of rows that leave: a count says of nobody on the list that they were suppressed
        kept, there = ~recoded.leaving.suppressed, recoded.published
        raw, recoded = raw.take(there), recoded.only(there)
        if isinstance(attacking.get("other"), Recoded):
            attacking["other"] = attacking["other"].leaving.only(kept)
    before = Target(raw=raw, recoded=recoded).before
    attacks = attack(raw, recoded, random=random, **attacking)
    knowing = _NOT_RUN if tried else _NOT_TOLD
    if any(each.name == "minimality" for each in attacks):
        knowing = _TRIED
    return Certificate(
        models=reached,
        risk=found,
        risk_before=risk_of(before, quasi=quasi),
        attacks=attacks,
        digest=digest_of(frame),
        utility=dict(utility or {}),
        made=dict(made or {})
        | compared
        | {"attacker who knows the algorithm": knowing}
        | ({"published as they are": ", ".join(as_they_are)} if as_they_are else {}),
    )


def _agree(frame: Frame, recoded: Recoded, missing_values: Sequence[Any]) -> None:
    """The frame shows the labels and the sensitive values that the models were counted on, and as often. Where suppressed rows
    stayed, it has rows besides that say nothing."""
    pl = need_polars()
    missing = {MISSING, *map(_text, missing_values)}
    counted = {name: (column.codes, column.labels) for name, column in recoded.columns.items()}
    counted |= {name: (column.codes, column.values) for name, column in recoded.sensitive.items() if name in frame.names}
    kept = recoded.published
    read = encode(frame, list(counted), missing_values=missing_values, told=list(recoded.sensitive), apart=list(recoded.columns))
    shown = {name: (column.codes, column.values) for name, column in read.columns.items()}
    names = [f"column {place}" for place in range(len(counted))]
    both = [
        _kinds(shown, np.ones(frame.rows, dtype=bool), frame.weights, missing),
        _kinds(counted, kept, recoded.weights, missing).with_columns(-pl.col("rows")),
    ]
    apart = pl.concat(both).group_by(names).agg(pl.col("rows").sum()).filter(pl.col("rows") != 0)
    star = pl.lit(_read(STAR, missing))
    silent = apart.select(pl.all_horizontal(pl.col("rows") > 0, *(pl.col(name).eq_missing(star) for name in names)))
    if not silent.to_series().all():
        raise CloisterError(
            "The table was not certified",
            why="it shows other classes than those that the models were counted on, or other sensitive values in them",
            instead="report this, or publish the table that anonymizer.publish(…) gives",
        )


def _kinds(
    columns: Mapping[str, tuple[npt.NDArray[np.int32], Sequence[Any]]],
    kept: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.int64] | None,
    missing: set[str],
) -> Any:
    """Rows as a reader sees them, and how many there are of each kind."""
    pl = need_polars()
    codes = [each[kept] for each, _ in columns.values()]
    names = [f"column {place}" for place in range(len(columns))]
    if not kept.any():
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String) | {"rows": pl.Int64})
    ids, count = alike(codes, [len(values) for _, values in columns.values()])
    first = np.zeros(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    texts = {
        name: pl.Series(name, [_read(value, missing) for value in values], dtype=pl.String).gather(each[first])
        for name, each, (_, values) in zip(names, codes, columns.values(), strict=True)
    }
    return pl.DataFrame(texts | {"rows": tally_of(ids, count, None if weights is None else weights[kept])})


def _read(value: Any, missing: set[str]) -> str | None:
    """A value as it looks: which of several spellings was written decides nothing."""
    text = None if value is None else _text(value)
    return None if text in missing else shown(text)


def _text(value: Any) -> str:
    """A value as text, whatever type a format gave it: a day is a day, with midnight or without."""
    return _MIDNIGHT.sub(r"\1", text_of(value))
