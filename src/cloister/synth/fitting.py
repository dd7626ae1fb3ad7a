"""From a table to a synthetic model: the door measures, the rest is post-processing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Literal, cast, get_args, overload

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import ApproxDP, Exact, Guarantee, PureDP, exact, zero_of
from cloister.session import Door, Measurer, Question, Spending
from cloister.session.execution.rehearsal import declared_rows as stand_ins
from cloister.synth.choosing import check_choosing, choose
from cloister.synth.discretizing import as_if_cut, both, cut
from cloister.synth.drawing import accepted
from cloister.synth.earlier import Earlier, earlier_of, heard
from cloister.synth.gaussians import GaussianModel, fit_gaussians
from cloister.synth.k_anonymous import KAnonymousModel, fit_k_anonymous
from cloister.synth.measuring import Marginals, Origin, check_spend, declared_rows, mean_noise, measure
from cloister.synth.mixture import Mixture, fitted, shortened
from cloister.synth.model import DECLARED, FRAME, SyntheticModel
from cloister.synth.rules import Rules
from cloister.synth.states import Asked, Calendar, QuantileBins, States, states_of
from cloister.synth.workload import About, Adaptive, Fixed, Method, about_of
from cloister.tables import Domain, PrivateTable, Relation

_PURPOSE = "synthetic table"
_CLEAR_SIGNAL = 2_000
"""From how many times on triples repay what they cost, in trials on Adult: 3-way tables are a quarter closer at ε = 10."""
_METHODS: tuple[Fixed, ...] = ("pairs", "triples", "independent")
"""What `auto` chooses from."""
_LEAST_SIGNAL = 20
"""How many times the noise of a cell of a two-way table all rows must be for pairs to tell more than they cost."""


@overload
def fit(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    method: Literal["auto"] | Method = "auto",
    columns: Sequence[Asked] | None = None,
    about: Sequence[str | Sequence[str]] | None = None,
    rules: Sequence[str] = (),
    earlier: Sequence[str | Question] = (),
    purpose: str = _PURPOSE,
    progress: Callable[[str], None] = lambda _: None,
) -> SyntheticModel: ...


@overload
def fit(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    method: Literal["microaggregation"],
    columns: Sequence[Asked] | None = None,
    purpose: str = _PURPOSE,
) -> GaussianModel: ...


@overload
def fit(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    method: Literal["k_anonymous"],
    columns: Sequence[Asked] | None = None,
    purpose: str = _PURPOSE,
) -> KAnonymousModel: ...


def fit(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    method: Literal["auto", "microaggregation", "k_anonymous"] | Method = "auto",
    columns: Sequence[Asked] | None = None,
    about: Sequence[str | Sequence[str]] | None = None,
    rules: Sequence[str] = (),
    earlier: Sequence[str | Question] = (),
    purpose: str = _PURPOSE,
    progress: Callable[[str], None] = lambda _: None,
) -> SyntheticModel | GaussianModel | KAnonymousModel:
    """A synthetic model of a private table, for one charge.

    Guarantee: what is measured is counts, by the door, for `spend` and no more (`measuring.py` has neighbours, sensitivity and
    proof, `choosing.py` those of methods that choose); the model and all rows drawn from it are post-processing of that release.
    Counted are rows that have a value in every column of the model that is not declared nullable; others are left out.
    Should the fit be interrupted, the release is kept, and the same call again costs nothing (in another session, if rows in
    memory were given a `version`).

    Parameters
    ----------
    spend
        What it may cost: ε, or ρ under a zCDP budget; or a guarantee. 0, with the method left open: rows that follow the
        declarations and `rules=` and tell nothing of the table, drawn as a session's rehearsals draw them.
    method
        `"pairs"`: all one- and two-way tables, and a mixture fitted to them. `"independent"`: one-way tables, each column by
        itself. `"triples"`: besides, up to a hundred tables of three columns. `"histogram"`: besides one-way tables the one table
        of all columns, of up to 10⁵ cells, and no fit. Four look at the rows besides, and pay for their choices: `"mst"` takes a
        tree of pairs, `"aim"` and `"mwem"` round by round the table on which the model is worst, `"privbayes"` a network of
        columns. `"auto"`: pairs, unless there is one column, or the public `size=` of the table says that noise would hide them,
        or is so small that triples repay too. Two make no marginals, and take neither `about=` nor `rules=`:
        `"microaggregation"` is `fit_gaussians` in groups of the columns that are categories or truth values; `"k_anonymous"` is
        `fit_k_anonymous`, which is NOT PRIVATE: nothing is charged, and the population's spending reads unbounded from then on.
    columns
        Names, or `cl.Binned(name, edges)` for a number or a day in bins of your own; None: all that are declared. The column
        that says whose row a row is names people, and is never among them. `cl.synth.QuantileBins(name)` cuts a number with a
        long tail where its rows are, `cl.synth.Calendar(name)` keeps weekday and season of a day: for a tenth of the spend each,
        and three tenths at most, in a charge of its own before the other. Of categories, more than 1,000 need `QuantileBins`.
        The population's budget is asked for both charges before the first; an analyst's share for each by itself.
    rules
        What every drawn row obeys, as conditions in SQL: `"birth <= admission <= discharge"`, `"a + b = total"`; besides
        `"age < 15 => marital = 'never married'"` and `"missing(date) == missing(value)"`. A missing value breaks no comparison.
        Rows of the table that break a rule are mended one by one by a public map before they are counted (`rules.py`).
        The difference of two columns in bins that a rule orders is counted as a column of its own: computed of each row, so
        neighbours, sensitivity and charge are those of any other column.
    earlier
        Questions that you asked before, as texts in SQL: counts of all rows by one to three of the columns. Their answers are
        evidence that costs nothing again (`earlier.py` has the conditions and the proof): noise falls where they say about the
        same cells. The model's `cost` names their charges too, since it shows what they said.
    progress
        Told what is being done.
    """
    remote = getattr(session, "synthesise", None)
    if remote is not None:  # a hub makes it there, as a job
        said = None if purpose == _PURPOSE else purpose
        asked = {"about": about or (), "rules": rules, "earlier": earlier, "purpose": said, "progress": progress}
        return cast("SyntheticModel", remote(table, spend=spend, columns=columns, method=method, **asked))
    declaration, declared = declared_rows(session, table)
    if method == "microaggregation" or method == "k_anonymous":
        if about or rules or earlier:
            raise InvalidParameter(
                f"about=, rules= and earlier= are invalid with {method!r}", why="it makes no marginals", instead='method="pairs"'
            )
        if method == "k_anonymous":
            if not isinstance(spend, Guarantee) and exact(spend, "spend") < 0:
                raise InvalidParameter(f"spend={spend!r} is invalid", why="it is negative", instead="spend=0: nothing is charged")
            return fit_k_anonymous(session, table, columns=columns)
        return fit_gaussians(session, table, spend=spend, columns=columns, purpose=purpose)
    if method not in ("auto", *get_args(Method)):
        known = ", ".join(("auto", *get_args(Method), "microaggregation", "k_anonymous"))
        raise InvalidParameter(f"method={method!r} is invalid", why=f"known are {known}", instead='method="pairs"')
    states = states_of(declared, columns, table=table, bought=True)
    wanted = about_of(session, table, [each.name for each in states], about)
    blind = {
        "independent": ("independent columns", "they keep nothing of two columns", 'method="pairs"'),
        "mst": ("mst", "it measures a tree of pairs, whatever they are for", 'method="aim"'),
        "privbayes": ("privbayes", "it measures a network of columns, whatever they are for", 'method="aim"'),
        "histogram": ("a histogram", "it measures all columns together, whatever they are for", 'method="pairs"'),
    }
    if wanted and method in blind:
        name, reason, instead = blind[method]
        raise InvalidParameter(f"about= is invalid with {name}", why=reason, instead=instead)
    before_it = earlier_of(session, table, states, earlier) if earlier else []
    if method == "auto" and not isinstance(spend, Guarantee) and exact(spend, "spend") == 0:
        return _unspent(session, table, declaration, Rules.of(rules, states, table=table), earlier)
    ruled = Rules.of(rules, states, table=table)
    adaptive = method in get_args(Adaptive)  # is handed rows of the table itself
    source, unmapped = (table, ruled.texts) if adaptive else ruled.mapped(session, table, declaration, spend)
    if method != "histogram":
        ruled, source = ruled.with_differences(source, unmapped)
    check_spend(session, source, ruled.fitted, spend, size := declaration.size)
    chosen, why = _chosen(session, source, ruled.fitted, spend, size, wanted) if method == "auto" else (method, "")
    _check_earlier(before_it, chosen, rules)
    cuts: dict[str, Any] = {each.name: each for each in columns or () if isinstance(each, QuantileBins | Calendar)}
    progress("measuring")
    before: Origin = {}
    if cuts:
        if adaptive:
            check_choosing(declaration, table, states, chosen)  # type: ignore[arg-type]
            after = Fraction(1)
        else:  # of as many bins as cuts may make: the plan of what comes after the cuts is seen before they are charged
            planned = [as_if_cut(each, cuts.get(each.name)) for each in ruled.fitted]
            after = mean_noise(session, source, planned, chosen, spend, wanted)[1].delta  # type: ignore[arg-type]
        buy = getattr(session, "cut", None) or partial(cut, session)  # what is explained buys none
        states, spend, before = buy(table, states, cuts, spend, purpose, after)
        ruled = replace(ruled, states=tuple(states))
    act: Any = choose if adaptive else partial(measure, as_they_are=bool(before_it))
    found, origin = act(session, source, ruled.fitted, chosen, spend, about=wanted, purpose=purpose)
    found, more = heard(found, origin, before_it)
    origin = reduce(both, [*more, before, origin])
    return modelled(table, chosen, ruled, found, origin, why=why, unmapped=unmapped, progress=progress)


def _unspent(
    session: Measurer, table: str, declaration: PrivateTable, ruled: Rules, earlier: Sequence[str | Question]
) -> SyntheticModel:
    """What is published for nothing: one component, in which values spread evenly over what is declared."""
    if earlier:
        raise InvalidParameter("earlier= is invalid", why="nothing is spent, and so nothing is fitted", instead='spend="0.1"')
    columns = []
    for each in ruled.states:
        shares = each.pieces.sizes(each.number)
        if each.domain.nullable:
            shares[-1] = shares[:-1].sum() / 11  # every twelfth
        columns.append(shares[None, :] / shares.sum())
    mixture, (population, budget) = Mixture(np.ones(1), tuple(columns)), session.population_of(table)
    return SyntheticModel(
        table=table,
        method=DECLARED,
        why="nothing was spent: rows follow the declarations alone, and tell nothing of the table",
        columns=ruled.states,
        mixture=mixture,
        rows=float(stand_ins(declaration)),
        rows_error=0.0,
        rules=ruled.texts,
        acceptance=accepted(mixture, ruled, {}),
        cost=zero_of(budget),
        population=population,
        charges=(),
    )


def modelled(
    table: str,
    method: Method,
    ruled: Rules,
    found: Marginals,
    origin: Origin,
    *,
    why: str = "",
    unmapped: tuple[str, ...] = (),
    progress: Callable[[str], None],
) -> SyntheticModel:
    """What is published of measured tables: a mixture is fitted to them."""
    count, error = found.rows()
    mixture = fitted(found, zeros=ruled.zeros, progress=progress)
    for place, each in enumerate(ruled.beside, len(ruled.states)):
        mixture = shortened(mixture, found, place, missing=each.domain.nullable)
    return SyntheticModel(
        table=table,
        method=method,
        why=why,
        columns=ruled.states,
        mixture=mixture,
        rows=count,
        rows_error=error,
        measured=found,
        rules=ruled.texts,
        unmapped=unmapped,
        acceptance=accepted(mixture, ruled, {}),
        differences=ruled.beside,
        **origin,
    )


@overload
def fit_frame(
    frame: Any,
    columns: Mapping[str, Domain],
    *,
    epsilon: Exact,
    delta: Exact = 0,
    method: Literal["auto"] | Method = "auto",
    cuts: Sequence[QuantileBins | Calendar] = (),
    about: Sequence[str | Sequence[str]] | None = None,
    rules: Sequence[str] = (),
    unit: str | None = None,
    max_rows: int | None = None,
    random: Random | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> SyntheticModel: ...


@overload
def fit_frame(
    frame: Any,
    columns: Mapping[str, Domain],
    *,
    epsilon: Exact,
    delta: Exact = 0,
    method: Literal["microaggregation"],
    unit: str | None = None,
    max_rows: int | None = None,
    random: Random | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> GaussianModel: ...


@overload
def fit_frame(
    frame: Any,
    columns: Mapping[str, Domain],
    *,
    epsilon: Exact,
    delta: Exact = 0,
    method: Literal["k_anonymous"],
    unit: str | None = None,
    max_rows: int | None = None,
    random: Random | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> KAnonymousModel: ...


def fit_frame(
    frame: Any,
    columns: Mapping[str, Domain],
    *,
    epsilon: Exact,
    delta: Exact = 0,
    method: Literal["auto", "microaggregation", "k_anonymous"] | Method = "auto",
    cuts: Sequence[QuantileBins | Calendar] = (),
    about: Sequence[str | Sequence[str]] | None = None,
    rules: Sequence[str] = (),
    unit: str | None = None,
    max_rows: int | None = None,
    random: Random | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> SyntheticModel | GaussianModel | KAnonymousModel:
    """A synthetic model of rows at hand (a frame, a dict of lists, a file), with a budget of its own: (ε, δ), all of it spent.
    `cuts` are columns whose bins are bought: `cl.synth.QuantileBins(name)`, `cl.synth.Calendar(name)`.

    Guarantee: that of `fit`. Every call is a release of its own: two of them on the same rows cost the sum.

    >>> from cloister.tables import Boolean, Integer
    >>> model = fit_frame({"age": [30, 40, 50] * 100, "smoker": [True, False, False] * 100},
    ...                   {"age": Integer(18, 99), "smoker": Boolean()}, epsilon=1)
    >>> model.sample(3)["smoker"].dtype
    dtype('bool')
    """
    given, way = [frame], cast("Method", method)  # any that `fit` takes
    del frame  # no frame of a refusal may hold the rows
    table = PrivateTable(given.pop(), columns, unit=unit, max_rows=max_rows, population=FRAME)
    fine = isinstance(cuts, list | tuple) and all(isinstance(each, QuantileBins | Calendar) for each in cuts)
    if not fine or len({each.name for each in cuts}) < len(cuts):
        why = "it is a list of columns whose bins are measured, each once"
        raise InvalidParameter(f"cuts={cuts!r} is invalid", why=why, instead="a list of QuantileBins and Calendar")
    asked = {name: name for name in columns if name != unit} | {each.name: each for each in cuts}
    budget = ApproxDP(epsilon, delta) if exact(delta, "delta") else PureDP(epsilon)
    with Door({"frame": table}, budget=budget, random=random) as door:
        return fit(
            door,
            "frame",
            spend=budget,
            method=way,
            columns=list(asked.values()),
            about=about,
            rules=rules,
            progress=progress,
        )


def _check_earlier(known: Sequence[Earlier], method: Method, rules: Sequence[str]) -> None:
    """Where earlier answers are no evidence of what is measured now."""
    if not known:
        return
    if method in get_args(Adaptive):
        raise InvalidParameter(
            f"earlier= is invalid with {method!r}", why="margins of chosen tables are read one round at a time", instead='"pairs"'
        )
    if rules:
        raise InvalidParameter(
            "earlier= is invalid with rules",
            why="earlier counts are of rows that were not mended",
            instead="rules=[], or no earlier=",
        )


def _chosen(
    session: Measurer, table: str | Relation, states: Sequence[States], spend: Spending, size: int | None, about: About
) -> tuple[Method, str]:
    """By public facts: the number of columns, and the noise that the spend buys beside the owner's hint of the size."""
    if len(states) == 1:
        return "independent", "there is one column"
    noise = {method: mean_noise(session, table, states, method, spend, about)[0] for method in _METHODS}
    told = "; ".join(f"{method} ± {1.96 * each:,.3g}" for method, each in noise.items())
    said = f"the expected error of a measured cell, in rows at 95 %: {told}"
    if size is None:
        return "pairs", f"the default; {said}"
    signal = size / noise["pairs"]
    if signal < _LEAST_SIGNAL and not about:
        return "independent", f"{size:,} rows are {signal:.2g} times the noise of pairs, which need {_LEAST_SIGNAL}; {said}"
    chosen: Fixed = "triples" if signal >= _CLEAR_SIGNAL else "pairs"
    return chosen, f"{size:,} rows are {signal:.3g} times the noise of pairs, and triples repay from {_CLEAR_SIGNAL:,}; {said}"
