"""Synthetic models of several populations pooled: two hospitals fit apart, and a project reads both as one table.

The law of the pooled rows is Σ_i n_i·P_i / Σ_i n_i, with the noisy numbers of rows n_i: again a mixture of products. A table that
was measured of every part is measured of the pool: its counts are the sums, and their noises, of separate charges and so
independent, add: variances and fourth cumulants are sums, and the largest Laplace noise is the largest of any part. So measured
numbers and sure bounds hold at their confidence as they do of one model (`released.py`). Of tables that were chosen by looking
(`choosing.py`) only those of the first round are read, which were fixed before any noise was drawn. No error of the rows of a
pool is expected: refits were tried on single models alone.

Guarantee. Neighbours: one person more or less in one of the populations. Who is in one population alone changes one part, and
pooling is post-processing, so their cost is that of their own part, and the largest bounds everybody's (parallel composition,
McSherry 2009, theorem 4). It needs that which population a person is in depends on that person alone. Who is in several has the
sum of their costs. Models of one population are refused: the same people may be in both, and would be counted twice.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, NotConvertible
from cloister.noise import Random
from cloister.printable import margin_text
from cloister.privacy import Guarantee, parallel
from cloister.synth.drawing import systematic
from cloister.synth.measuring import Marginals, Noisy, combined
from cloister.synth.mixture import Mixture
from cloister.synth.model import FRAME, POOLED, SyntheticModel
from cloister.synth.pieces import Integers, Pieces
from cloister.synth.states import States

_EXAMPLE = 'cl.synth.pooled({"north": model, "south": model})'


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PooledModel(SyntheticModel):
    """What `cl.synth.pooled` gives: a synthetic model of all populations together, which knows its parts."""

    parts: Mapping[str, SyntheticModel]
    """By population."""

    @property
    def costs(self) -> dict[str, Guarantee]:
        """What was spent on each population: what it cost a person who is in that one alone. `cost` is the largest of them."""
        return {name: part.cost for name, part in self.parts.items()}

    @property
    def said(self) -> tuple[str, ...]:
        """Which rows are counted, and what each population paid."""
        each = ", ".join(f"{cost} of {name!r}" for name, cost in self.costs.items())
        said = f"by population: {each}; a person's cost is that of their own population, and the sum if they are in several"
        alike = sorted({part.population for part in self.parts.values()} - {FRAME})
        if len(alike) < sum(part.population != FRAME for part in self.parts.values()):
            twice = f"several of the parts call their population {alike[0]!r}: if it is one and the same, costs add up"
            return (*super().said, said, twice)
        return (*super().said, said)

    def met(self, allowed: Mapping[int, Pieces]) -> float:
        """The share of rows that meet the conditions, among those that obey the rules."""
        return float(_weights(self.parts.values()) @ [part.met(allowed) for part in self.parts.values()])

    def draw(self, n: int, allowed: Mapping[int, Pieces], random: Random) -> list[Integers]:
        """Under rules from each part by itself: rows that break them are thrown away, and not as many of each part."""
        if not self.rules:
            return super().draw(n, allowed, random)
        parts = list(self.parts.values())
        shares = _weights(parts) * [part.met(allowed) for part in parts]
        numbers = systematic(shares[None, :], np.array([n]), random)[0].tolist()
        codes = [part.draw(number, allowed, random) for part, number in zip(parts, numbers, strict=True) if number or not n]
        order = random.permutation(n)
        return [np.concatenate(column)[order] for column in zip(*codes, strict=True)]

    def to_json(self) -> str:
        """The parts as JSON: plain numbers and texts, nothing that runs."""
        parts = {name: json.loads(part.to_json()) for name, part in self.parts.items()}
        return json.dumps({"format": 1, "kind": POOLED, "table": self.table, "parts": parts}, ensure_ascii=False)

    def __repr__(self) -> str:
        lines = [
            f"  of {name!r}: {part.rows:z,.0f} ± {margin_text(part.rows_margin)} rows, method {part.method!r}, {part.cost}"
            for name, part in self.parts.items()
        ]
        return "\n".join([super().__repr__(), *lines])


def pooled(models: Sequence[SyntheticModel] | Mapping[str, SyntheticModel], *, table: str | None = None) -> PooledModel:
    """One synthetic model of several populations, from a model of each: for no further cost.

    Guarantee: that of each part for the people of its population; somebody who is in several has the sum (`pooling.py`).

    Parameters
    ----------
    models
        Models with the same columns, declared and cut into bins alike, and the same rules. A list takes the populations' own
        names, each of which may be there once. A dict names them: so whoever writes it says that no person is in two of them.
    table
        The name in queries; None: the one that the parts have in common, or else "pooled".

    >>> from cloister.noise import Random
    >>> from cloister.synth import fit_frame
    >>> from cloister.tables import Boolean
    >>> one, other = (fit_frame({"smoker": [True, False] * rows}, {"smoker": Boolean()}, epsilon=1,
    ...                         random=Random.deterministic(rows)) for rows in (300, 500))
    >>> both = pooled({"north": one, "south": other}, table="patients")
    >>> answer = both.answer("SELECT COUNT(*) AS n FROM patients WHERE smoker")
    >>> answer.kind()["n"].tolist(), bool(answer.low()["n"][0] <= 800 <= answer.high()["n"][0]), str(both.cost)
    (['measured'], True, 'ε = 1')
    """
    named = _named(models)
    parts = list(named.values())
    first = parts[0]
    for name, part in named.items():
        _check_alike(first, part, next(iter(named)), name)
    try:
        cost = parallel(part.cost for part in parts)
    except NotConvertible:
        raise _refused("the cost of one is in ρ, of another in ε and δ", "models whose budgets count in one measure") from None
    tables, weights = {part.table for part in parts}, _weights(parts)
    told = [f"{part.method} of {name!r}" for name, part in named.items()]
    return PooledModel(
        parts=named,
        table=table or (first.table if len(tables) == 1 else "pooled"),
        method="pooled",
        why=", ".join(told),
        columns=first.columns,
        differences=first.differences,
        mixture=Mixture(
            np.concatenate([weight * part.mixture.weights for weight, part in zip(weights, parts, strict=True)]),
            tuple(np.concatenate(each) for each in zip(*(part.mixture.columns for part in parts), strict=True)),
        ),
        rows=fsum(part.rows for part in parts),
        rows_error=sqrt(fsum(part.rows_error**2 for part in parts)),
        cost=cost,
        population=", ".join(named),
        charges=tuple(f"{name}: {charge}" for name, part in named.items() for charge in part.charges),
        marked=first.marked,
        measured=_added([part.measured for part in parts]),
        rules=first.rules,
        unmapped=tuple(dict.fromkeys(text for part in parts for text in part.unmapped)),
        acceptance=float(weights @ [part.acceptance for part in parts]),
    )


def read_pooled(document: Mapping[str, Any]) -> PooledModel:
    """The model of a document that `to_json` wrote."""
    if document["format"] != 1:
        raise _refused(f"its format is {document['format']!r}, and this version reads 1", "a newer version of cloister")
    parts = {str(name): SyntheticModel.from_json(json.dumps(part)) for name, part in document["parts"].items()}
    return pooled(parts, table=str(document["table"]))


def _named(models: Any) -> dict[str, SyntheticModel]:
    """The models by their populations."""
    held = list(models.values()) if isinstance(models, Mapping) else list(models) if isinstance(models, list | tuple) else []
    if len(held) < 2 or not all(isinstance(each, SyntheticModel) for each in held):
        raise _refused("they are two or more synthetic models, in a list or a dict", _EXAMPLE)
    if any(isinstance(each, PooledModel) for each in held):
        raise _refused("one of them is pooled already", "all parts at once: pooled({**both.parts, …})")
    names = [str(name) for name in models] if isinstance(models, Mapping) else [each.population for each in held]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        why = f"two of them are of the population {twice!r}, and a person who is in both would be counted twice"
        raise _refused(why, f"{_EXAMPLE}, if they are other people")
    texts = [each.to_json() for each in held]
    if len(set(texts)) < len(texts):
        raise _refused("one of them is given twice", "another model for each population")
    if len({each.marked for each in held}) > 1:
        raise _refused("the noise of one came from a test's generator and protects nobody", "models that are not marked")
    return dict(zip(names, held, strict=True))


def _check_alike(first: SyntheticModel, other: SyntheticModel, one: str, two: str) -> None:
    names, others = ([each.name for each in (*model.columns, *model.differences)] for model in (first, other))
    if names != others:
        why = f"{one!r} has the columns {', '.join(names)}, and {two!r} has {', '.join(others)}"
        raise _refused(why, f"columns={names!r} in each fit")
    for own, its in zip((*first.columns, *first.differences), (*other.columns, *other.differences), strict=True):
        if _declared(own) != _declared(its):
            why = f"the column {own.name!r} is declared, or cut into bins, otherwise in {one!r} than in {two!r}"
            raise _refused(why, f"one declaration of {own.name!r} in each table")
    if first.rules != other.rules:
        raise _refused(f"{one!r} and {two!r} have different rules", f"rules={list(first.rules)!r} in each fit")


def _declared(states: States) -> Any:
    return states.domain.describe(), states.starts.tolist(), states.shape


def _weights(parts: Any) -> Any:
    """The share of each part among all rows, by the noisy counts; all the same where these say that there are none."""
    rows = np.array([max(part.rows, 0.0) for part in parts])
    return rows / rows.sum() if rows.sum() > 0 else np.full(len(rows), 1 / len(rows))


def _added(parts: Sequence[Marginals | None]) -> Marginals | None:
    """What was measured of all of them, before anything was chosen by looking; None where a file of old does not know."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    first = [combined([(kept, table) for kept, table in part.readings if table.round == 0]) for part in known]
    shared = [kept for kept in first[0] if all(kept in each for each in first)]
    tables = {kept: _sum([each[kept] for each in first]) for kept in shared}
    return Marginals(sizes=known[0].sizes, tables=tables, complete=all(part.complete for part in known))


def _sum(tables: Sequence[Noisy]) -> Noisy:
    return Noisy(
        np.sum([each.counts for each in tables], axis=0),
        fsum(each.variance for each in tables),
        laplace=False,
        fourth=fsum(each.fourth for each in tables),
        largest=max(each.largest for each in tables),
    )


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The models cannot be pooled", why=why, instead=instead)
