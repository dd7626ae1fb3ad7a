"""The session that a hub answers: the questions of `cloister.Session`, with nothing of their own but text on the way there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast
from urllib.parse import quote

import numpy as np

from cloister.client.anonymizing import AnonymizedTable, order_of, table_of
from cloister.client.plan import RemotePlan, guarantee_from
from cloister.client.refusals import HubError, NotOverHub
from cloister.client.transport import Transport, new_key, no_answer
from cloister.errors import InvalidParameter, NotConvertible, check_one_of
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, PureDP, exact_nonnegative, exact_positive, text_of, zero_of
from cloister.session import Affordable, Frame, Plan, Release, Series
from cloister.session.planning.afford import affordable
from cloister.session.planning.within import check_asked
from cloister.session.questions.spend import Spending, amount_of, less
from cloister.session.releases.uncertainty import check_confidence
from cloister.tables import Binned, Domain, Text
from cloister.tables.declaring.plain import domain_of

if TYPE_CHECKING:
    from cloister.anonymize import Anonymizer
    from cloister.learn.frame.base import PrivateModel
    from cloister.local.survey.models import Chances, Line
    from cloister.synth import SyntheticModel
    from cloister.synth.states import Asked
    from cloister.traces import Journeys, RoadJourneys

_PAGE = "100"
_OF_THE_FIT = frozenset({"epsilon", "delta", "bounds", "bounds_y", "classes", "privacy", "random"})
"""What follows there from the declarations and from the spend."""


@dataclass(frozen=True, kw_only=True)
class RemoteTable:
    """A data set as the hub's catalogue shows it: its public declaration, and no row.

    >>> RemoteTable(name="people", columns={}, population="people")
    <people: 0 columns, of the population 'people'>
    """

    name: str
    columns: Mapping[str, Domain]
    title: str = ""
    about: str = ""
    unit: str | None = None
    max_rows: int | None = None
    size: int | None = None
    population: str | None = None
    """None: a public table, which has no budget."""

    @property
    def public(self) -> bool:
        """Whether it protects nobody."""
        return self.population is None

    def __repr__(self) -> str:
        whose = "public" if self.population is None else f"of the population {self.population!r}"
        return f"<{self.name}: {len(self.columns)} columns, {whose}>"


class RemoteSession:
    """Questions in SQL to a hub, as the person of an API token. Several threads may use one session.

    It is made by `cloister.connect`. What a session on this machine does with objects (`measure`, `run`, …) a hub does not take:
    it answers SQL, learns models (`fit_model`), makes synthetic tables (`synthesise`), and anonymises tables for their owner
    (`anonymize`).

    >>> import cloister as cl
    >>> with cl.connect("http://127.0.0.1:8765", token="clo_of_an_analyst", purpose="a study") as session:
    ...     isinstance(session, cl.RemoteSession), session
    (True, <RemoteSession: http://127.0.0.1:8765>)
    """

    def __init__(self, transport: Transport, *, project: str = "", purpose: str = "", algorithm: str = "") -> None:
        self._transport = transport
        self._who = ""
        self.project = project
        self.purpose = purpose
        self.algorithm = algorithm

    @property
    def who(self) -> str:
        """The person as the ledger writes them."""
        if not self._who:
            self._who = str(self._transport.get("/me").get("email", ""))
        return self._who

    @property
    def tables(self) -> dict[str, RemoteTable]:
        """The data sets that this person may know of, with their declarations."""
        return {each["name"]: _table(each) for each in self._all("/datasets")}

    @property
    def spent_by(self) -> dict[str, Guarantee]:
        """What has been spent of each population's budget, where this person may see it."""
        return {population: spent for population, (spent, _) in self._money().items()}

    @property
    def spent(self) -> Guarantee:
        """What has been spent; with several populations, of the one that has spent most."""
        return max(_some(self.spent_by), key=amount_of)

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of each population's budget, where this person may see it; nothing while the ledger is frozen."""
        return {population: left for population, (_, left) in self._money().items()}

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The populations of which something left without a guarantee: what is known of those, no number bounds."""
        return tuple(dict.fromkeys(str(each["population"]) for each in self._all("/datasets") if each.get("unbounded")))

    @property
    def remaining(self) -> Guarantee:
        """What is left; with several populations, of the one that has least."""
        return min(_some(self.remaining_by), key=amount_of)

    def _money(self) -> dict[str, tuple[Guarantee, Guarantee]]:
        """What is spent and left by population, as the data sets tell it."""
        found = dict[str, tuple[Guarantee, Guarantee]]()
        for each in self._all("/datasets"):
            if each.get("population") and each.get("budget") and each.get("spent"):
                budget, spent = guarantee_from(each["budget"]), guarantee_from(each["spent"])
                left = None if each.get("frozen") else less(budget, spent)
                found[str(each["population"])] = spent, left or zero_of(budget)
        return found

    def _all(self, path: str, name: str = "items") -> Iterator[Mapping[str, Any]]:
        """Every entry of a list that comes in pages, each with a part of it under that name."""
        after, seen = "", set[str]()
        while after not in seen:
            seen.add(after)
            page = self._transport.get(path, limit=_PAGE, **({"after": after} if after else {}))
            yield from page[name]
            after = page.get("next") or ""
            if not after:
                return
        raise no_answer("its list never ends")

    def sql(
        self,
        sql: str,
        spend: Spending | None = None,
        *,
        within: float | None = None,
        pilot: Spending | None = None,
        confidence: float = 0.95,
        purpose: str | None = None,
        project: str | None = None,
        dialect: str | None = None,
        rehearse: bool = False,
        fresh: bool = False,
    ) -> Release:
        """The private answer to a question in SQL; the parameters are those of `cloister.Session.sql`.

        `purpose` and `project` are in the place of the session's. `session.address_of(answer)` is where the hub keeps it.
        """
        check_asked(within, pilot, confidence, rehearse=rehearse, fresh=fresh)
        body = self._body(sql, spend, purpose, project, dialect) | {"fresh": fresh, "confidence": confidence}
        if within is not None:
            body["within"] = within
        if pilot is not None:
            body["pilot"] = self._amount(pilot, sql, dialect, "pilot")
        if rehearse:
            return _release(self._transport.post("/questions/rehearse", body)["release"])
        return self._kept(self._transport.post("/questions", body, key=new_key()))

    def explain(
        self,
        question: str,
        spend: Spending | None = None,
        *,
        dialect: str | None = None,
        confidence: float = 0.95,
        purpose: str | None = None,
        project: str | None = None,
    ) -> RemotePlan:
        """What would be measured, with which error, at which cost: spends nothing and reads no row."""
        body = self._body(question, spend, purpose, project, dialect)

        def at(wanted: float) -> Mapping[str, Any]:
            return self._transport.post("/questions/explain", body | _sure(wanted))

        return RemotePlan(at(confidence), at=at)

    def afford(
        self, question: str, spends: Sequence[Exact] | None = None, *, confidence: float = 0.95, dialect: str | None = None
    ) -> Affordable:
        """The expected margins of a question over a range of spends, by default up to what remains: spends nothing."""
        if spends is None:
            body = self._body(question, None, None, None, dialect) | _sure(confidence)
            told = self._transport.post("/questions/afford", body)
            margins = {
                name: Series("real", np.array([np.nan if each is None else each for each in found]))
                for name, found in told["margins"].items()
            }
            return Affordable(
                spends=tuple(exact_positive(each, "spends") for each in told["spends"]),
                margins=Frame(margins),
                confidence=confidence,
            )

        how: dict[str, Any] = {"dialect": dialect, "confidence": confidence}
        return affordable(lambda spend: cast(Plan, self.explain(question, spend, **how)), PureDP(1), spends, confidence)

    def workload(
        self,
        questions: Sequence[str],
        spend: Spending,
        *,
        purpose: str | None = None,
        project: str | None = None,
        dialect: str | None = None,
    ) -> list[Release]:
        """The private answers to several questions under one charge, measured together, so that they agree."""
        texts = list(questions) if isinstance(questions, Iterable) and not isinstance(questions, str) else []
        if not texts:
            instead = 'session.workload(["SELECT …"], spend=1)'
            raise InvalidParameter("The workload is invalid", why="it is a list of questions, at least one", instead=instead)
        body = self._body(texts[0], spend, purpose, project, dialect) | {"questions": texts}
        del body["sql"]
        return [self._kept(each) for each in self._transport.post("/questions/workload", body, key=new_key())["releases"]]

    def stored(
        self,
        question: str,
        spend: Spending | None = None,
        *,
        purpose: str | None = None,
        project: str | None = None,
        dialect: str | None = None,
    ) -> Release | None:
        """The answer that was bought of a question already, whoever bought it; None where that is nothing, or less than `spend`.
        It never spends of a population."""
        try:
            return self._kept(self._transport.post("/questions/stored", self._body(question, spend, purpose, project, dialect)))
        except HubError as error:
            if error.code != "missing":
                raise
            return None

    def fit_model(
        self,
        model: PrivateModel,
        table: str,
        *,
        features: Sequence[str],
        target: str | None = None,
        spend: Spending,
        title: str = "",
        held_out: Exact = "",
        purpose: str | None = None,
        project: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> str:
        """Have the hub learn a model of `cloister.learn` from a data set, as a job, and fill the estimator with what was learnt;
        the id under which the hub keeps it. `model.fit_table(session, …)` calls this. `title` is what its page is called;
        `held_out="0.2"` has a fifth of the rows judge the model, as its page then says. `progress` is told each stage.
        """
        from cloister.learn.frame.catalogue import METHODS, name_of

        check_one_of(name_of(model), "model", METHODS, instead="GaussianNB()")
        order = {
            "table": table,
            "method": name_of(model),
            "features": features,
            "target": target or "",
            "parameters": _parameters_of(model),
            **{name: str(given) for name, given in (("title", title), ("held_out", held_out)) if given},
            **self._asked_in(purpose, project),
            **({"algorithm": self.algorithm} if self.algorithm else {}),
            **_written(spend),
        }
        result = self._transport.ordered("/models", order, progress, "The model was not learnt", "fit_model")
        number = str(result["model"])
        _fill(model, self._transport.get(f"/models/{number}")["model"])
        return number

    def fit_survey(
        self,
        survey: str,
        target: str,
        features: Sequence[str],
        *,
        method: str = "naive-bayes",
        title: str = "",
        progress: Callable[[str], None] | None = None,
    ) -> Chances | Line:
        """Have the hub learn a model from the reports of one's own survey, by its address or its id, as a job: which answer
        somebody gives to `target` (`method="naive-bayes"`), or a number (`"regression"`), by their answers to `features`. Nothing
        is charged, and no respondent's ε grows. The hub keeps the model; `progress` is told each stage.
        """
        from cloister.local.survey.models import model_from_json

        order = {"method": method, "target": target, "features": features, "title": title}
        path = f"/surveys/{_number(survey)}/models"
        result = self._transport.ordered(path, order, progress, "The model was not learnt", "fit_survey")
        return model_from_json(self._transport.get(f"/survey-models/{result['survey_model']}")["model"])

    def run_algorithm(
        self,
        algorithm: str,
        table: str,
        *,
        spend: Exact,
        purpose: str | None = None,
        project: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Have the hub run an algorithm near a data set, as a job: its `values`, their `margins` and the `cost`, as the hub keeps
        them. Provider and owner both grant it. `progress` is told each stage."""
        order = self._run_of(algorithm, table, spend, purpose, project)
        result = self._transport.ordered("/algorithm-runs", order, progress, "The algorithm was not run", "run_algorithm")
        found: dict[str, Any] = json.loads(self._transport.file(f"/releases/{result['guest']}"))
        return found

    def explain_algorithm(
        self, algorithm: str, table: str, *, spend: Exact, purpose: str | None = None, project: str | None = None
    ) -> dict[str, Any]:
        """What a run would cost (`cost`, `charge`, `population`), and the margin of each mean (`errors`): spends nothing."""
        return self._transport.post("/algorithm-runs/price", self._run_of(algorithm, table, spend, purpose, project))

    def _run_of(self, algorithm: str, table: str, spend: Exact, purpose: str | None, project: str | None) -> dict[str, Any]:
        return {
            "algorithm": algorithm,
            "table": table,
            "spend": text_of(exact_positive(spend, "spend")),
            **self._asked_in(purpose, project),
        }

    def synthesise(
        self,
        table: str,
        *,
        spend: Exact,
        columns: Sequence[Asked] | None = None,
        method: str = "auto",
        about: Sequence[str | Sequence[str]] = (),
        rules: Sequence[str] = (),
        earlier: Sequence[str] = (),
        purpose: str | None = None,
        project: str | None = None,
        title: str = "",
        progress: Callable[[str], None] | None = None,
    ) -> SyntheticModel:
        """Have the hub make a synthetic table of a data set, as a job, and keep it there; the model, from which rows are drawn
        here. `columns=None`: all that are declared, but free text and the one that names people. `method`, `about`,
        `rules` and `earlier` are those of `cl.synth.fit`. `progress` is told each stage.
        """
        from cloister.synth import SyntheticModel

        if columns is None:
            found = [each for name, each in self.tables.items() if name == table]
            columns = [
                name for each in found for name, kind in each.columns.items() if not isinstance(kind, Text) and name != each.unit
            ]
        columns = columns if isinstance(columns, Iterable) else [columns]
        ranges = [_range(each) for each in columns if not isinstance(each, str)]
        order = {
            "table": table,
            "columns": [each if isinstance(each, str) else each.name for each in columns],
            **({"ranges": "\n".join(ranges)} if ranges else {}),
            "method": method,
            "workload": _lines("about", [about] if isinstance(about, str) else about),
            "rules": _lines("rules", rules),
            **({"earlier": _lines("earlier", earlier)} if earlier else {}),
            "spend": text_of(exact_nonnegative(spend, "spend")),
            **self._asked_in(purpose, project),
            "title": title,
        }
        result = self._transport.ordered("/synthetic-tables", order, progress, "The synthetic table was not made", "synthesise")
        return SyntheticModel.from_json(self._transport.file(f"/releases/{result['synthetic']}").decode())

    def synthesise_journeys(
        self,
        table: str,
        *,
        spend: Exact,
        moment: str = "moment",
        place: str = "",
        x: str = "",
        y: str = "",
        cells: int = 12,
        zones: int = 4,
        fastest: Exact | None = None,
        roads: tuple[str, str] | None = None,
        purpose: str | None = None,
        project: str | None = None,
        title: str = "",
        progress: Callable[[str], None] | None = None,
    ) -> Journeys | RoadJourneys:
        """Have the hub release noisy counts of journeys, as a job, and keep them there; the model, from which journeys are drawn
        here. Its options are those of `cl.traces.fit_journeys`; `roads` names the public data sets of a graph's nodes and edges.
        """
        from cloister.traces import journeys_from_json

        nodes, edges = roads or ("", "")
        order = {"table": table, "moment": moment, "place": place, "x": x, "y": y, "cells": str(cells), "zones": str(zones)}
        order |= {
            "fastest": "" if fastest is None else text_of(exact_positive(fastest, "fastest")),
            "nodes": nodes,
            "edges": edges,
            "spend": text_of(exact_positive(spend, "spend")),
            **self._asked_in(purpose, project),
            "title": title,
        }
        result = self._transport.ordered("/journeys", order, progress, "The journeys were not made", "synthesise_journeys")
        return journeys_from_json(self._transport.file(f"/releases/{result['journeys']}").decode())

    def synthetic(self, address: str, *others: str) -> SyntheticModel:
        """The model of a synthetic table that the hub keeps, by its address or its id: it draws rows and answers queries here.
        Several, of data sets about different people, are pooled into one (`cl.synth.pooled`).
        """
        from cloister.synth import SyntheticModel, pooled

        files = [self._transport.file(f"/releases/{_number(each)}") for each in (address, *others)]
        models = [SyntheticModel.from_json(each.decode()) for each in files]
        return pooled(models) if others else models[0]

    def answer(self, sql: str, *, confidence: float = 0.95) -> dict[str, list[Any]]:
        """What a synthetic table of the hub answers, by its name in queries: at no cost. Each statistic `n` is followed by its
        interval and by how sure that is (`n_low`, `n_high`, `n_kind`), as in `model.answer(…).to_pydict()`.
        """
        told = self._transport.post("/releases/answer", {"sql": sql} | _sure(confidence))
        return dict(told["columns"])

    def try_anonymizing(
        self,
        anonymizer: Anonymizer,
        table: str,
        *,
        kept: Sequence[str] = (),
        purpose: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Risk against loss of one's own data set, for several k and several levels, as a job: `points`, `before`, `trees`, and
        why nothing would do (`refused`). Exact, for the owner's eyes; nothing leaves but to them.
        """
        order = order_of(anonymizer, table, kept=kept, purpose=self.purpose if purpose is None else purpose)
        return self._anonymised("/anonymised/trials", order, progress)

    def anonymize(
        self,
        anonymizer: Anonymizer,
        table: str,
        *,
        name: str,
        title: str,
        understood: bool,
        levels: Mapping[str, int] | None = None,
        kept: Sequence[str] = (),
        purpose: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> AnonymizedTable:
        """Release one's own data set as an anonymised table, as a job; its rows become the data set `name`.

        **Not differentially private**: from then on the population's spending reads "unbounded", which `understood=True` says
        that you know. A column that the anonymizer does not name is dropped, unless it is among those `kept` as they are.
        `levels` are those of a point of `try_anonymizing`: then nothing is searched for.
        """
        order = order_of(anonymizer, table, kept=kept, purpose=self.purpose if purpose is None else purpose)
        order |= {"name": name, "title": title, "understood": understood, "levels": levels or {}}
        return table_of(self._transport, self._anonymised("/anonymised", order, progress))

    def anonymized(self) -> list[AnonymizedTable]:
        """The anonymised tables that this person released, the newest first."""
        return [table_of(self._transport, each) for each in self._all("/anonymised", "tables")]

    def _anonymised(self, path: str, order: Mapping[str, Any], progress: Callable[[str], None] | None) -> dict[str, Any]:
        """What the hub shows of an order once its job is done."""
        result = self._transport.ordered(path, order, progress, "The table was not anonymised", "anonymize")
        return self._transport.get(f"{path}/{str(result['href']).rpartition('/')[2]}")

    def report_store(
        self,
        name: str,
        *,
        layers: Mapping[str, Sequence[str]] | None = None,
        scores: Mapping[str, str] | None = None,
        verified: Mapping[str, Any] | None = None,
    ) -> None:
        """What your own tools found of the sealed store behind a masked data set of yours: how each field is stored, what
        attackers would get of it, and whether everything is as it was written. The hub shows it to you alone, for a week; what is
        left out stays. `cloister vault report` sends all three.

        >>> import cloister as cl
        >>> session = cl.connect("https://hub.example.org", token="clo_secret")
        >>> session.report_store("patients", layers={"age": ["AES-GCM-SIV"]})  # doctest: +SKIP
        """
        told = {"scores": scores or {}, "layers": layers or {}, "verified": verified}
        self._transport.put(f"/masked-datasets/{quote(str(name), safe='', errors='replace')}/scores", told)

    def release(self, address: str) -> Release:
        """An answer that the hub keeps, by its address or its id: byte for byte what was answered then. One that others show you
        takes a grant of `release.download` on the data that it came from, as a file of it does."""
        return self._kept(self._transport.get(f"/releases/{_number(address)}"))

    def address_of(self, answer: Release) -> str:
        """Where the hub keeps an answer; what was computed from an answer on this machine has no address."""
        found = getattr(answer, "address", None)
        if not isinstance(found, str):
            raise InvalidParameter(
                "The answer has no address", why="it did not come from a hub as it is", instead="the answer of session.sql(…)"
            )
        return found

    def close(self) -> None:
        """Let go of the connections. What the hub keeps stays."""
        self._transport.close()

    if not TYPE_CHECKING:  # where a name is looked up that is not here, a type checker says so

        def __getattr__(self, name: str) -> NoReturn:
            from cloister.query.session import Session  # where somebody looks for it

            if name.startswith("_") or not hasattr(Session, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise _no_objects(f"{name}()")

    def _asked_in(self, purpose: str | None, project: str | None) -> dict[str, str]:
        """What for and where, as the session says where a question does not."""
        return {"purpose": self.purpose if purpose is None else purpose, "project": self.project if project is None else project}

    def _body(
        self, sql: str, spend: Spending | None, purpose: str | None, project: str | None, dialect: str | None
    ) -> dict[str, Any]:
        if not isinstance(sql, str):
            raise _no_objects("A query that is not a text")
        return {
            "sql": sql,
            "spend": "" if spend is None else self._amount(spend, sql, dialect, "spend"),
            **self._asked_in(purpose, project),
            "dialect": dialect,
            **({"algorithm": self.algorithm} if self.algorithm else {}),
        }

    def _amount(self, spend: Spending, sql: str, dialect: str | None, name: str) -> str:
        """A spend as the exact text that travels. A guarantee is one number there only where the budget counts in its kind, which
        the hub's plan says before anything is spent.
        """
        if not isinstance(spend, PureDP | ApproxDP | ZCDP):
            return text_of(exact_positive(spend, name))
        text = text_of(amount_of(spend))
        for population, cost in self.explain(sql, text, dialect=dialect).costs.items():
            same = type(cost) is type(spend) and cost.delta <= spend.delta and amount_of(cost) <= amount_of(spend)
            if not same:
                raise NotConvertible(
                    f"{name}={spend!r} is invalid",
                    why=f"the budget of {population!r} would be charged {cost}, which that does not cover",
                    instead=f'{name}="{text}", counted as the budget counts',
                )
        return text

    def _kept(self, answer: Mapping[str, Any]) -> Release:
        release = _release(answer["release"])
        object.__setattr__(release, "address", f"{self._transport.address}/releases/{answer['id']}")  # it is frozen to others
        return release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteSession: {self._transport.address}>"


def _number(address: str) -> str:
    """The id of a release, by its address."""
    number = address.rstrip("/").rpartition("/")[2] if isinstance(address, str) else ""
    if len(number) > 32 or not number.replace("-", "").replace("_", "").isalnum() or not number.isascii():
        raise InvalidParameter(
            "The address is invalid", why="it is not the address of a release", instead="session.address_of(answer)"
        )
    return number


def _release(told: Any) -> Release:
    """The release in an answer: as its text, or as the object that the text holds."""
    return Release.from_json(told if isinstance(told, str) else json.dumps(told))


def _lines(name: str, given: Sequence[str | Sequence[str]]) -> str:
    """Texts, one a line each; a list of columns is one by commas."""
    if not isinstance(given, list | tuple) or not all(isinstance(each, str | list | tuple) for each in given):
        raise InvalidParameter(f"{name}= is invalid", why="a hub takes a list of texts", instead=f'{name}=["…"]')
    return "\n".join(" ".join((each if isinstance(each, str) else ", ".join(each)).splitlines()) for each in given)


def _range(column: Asked) -> str:
    """A column in bins, as a line of an order.

    >>> _range(Binned("age", [0, 18, 120]))
    'age = 0, 18, 120'
    """
    from cloister.synth import Calendar, QuantileBins

    match column:
        case Binned():
            return f"{column.name} = {', '.join(map(str, column.edges))}"
        case QuantileBins():
            return f"{column.name} = {column.bins} quantiles"
        case Calendar():
            return f"{column.name} = calendar"
    kind = type(column).__name__
    raise InvalidParameter(f"A column of type {kind!r} is invalid", why="it is not a name", instead='columns=["age"]')


def _sure(confidence: float) -> dict[str, float]:
    check_confidence(confidence)
    return {"confidence": confidence}


def _no_objects(what: str) -> NotOverHub:
    return NotOverHub(
        f"{what} is not supported",
        why="a hub takes questions as SQL; objects and methods stay on the machine that has the tables",
        instead='session.sql("SELECT …", spend="0.1"), session.fit_model(…), session.synthesise(…)',
    )


def _table(told: Mapping[str, Any]) -> RemoteTable:
    name, declaration = str(told["name"]), told.get("declaration") or {}
    columns = declaration.get("columns") or {}
    return RemoteTable(
        name=name,
        title=str(told.get("title", "")),
        about=str(told.get("about", "")),
        columns={column: domain_of(column, declared, table=name) for column, declared in columns.items()},
        unit=declaration.get("unit"),
        max_rows=declaration.get("max_rows"),
        size=declaration.get("size"),
        population=told.get("population") or None,
    )


def _written(spend: Spending) -> dict[str, str]:
    """A spend as it travels: exact, and with its kind.

    >>> _written(PureDP("0.1")), _written(1)
    ({'spend': '0.1', 'kind': 'pure'}, {'spend': '1'})
    """
    match spend:
        case PureDP():
            return {"spend": text_of(spend.epsilon), "kind": "pure"}
        case ApproxDP():
            return {"spend": text_of(spend.epsilon), "delta": text_of(spend.delta), "kind": "approx"}
        case ZCDP() if not spend.delta:
            return {"spend": text_of(spend.rho), "kind": "zcdp"}
        case ZCDP():
            raise InvalidParameter(
                f"{spend!r} is invalid", why="models are learnt under ρ without a δ", instead=f"cl.ZCDP({text_of(spend.rho)!r})"
            )
    return {"spend": text_of(exact_positive(spend, "spend"))}


def _parameters_of(model: PrivateModel) -> dict[str, Any]:
    """The method's own parameters where they are not what they are by themselves."""
    usual = type(model)().get_params(deep=False)
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in _OF_THE_FIT}
    return {name: value for name, value in given.items() if value is not usual[name] and value != usual[name]}


def _fill(model: PrivateModel, text: str) -> None:
    """Make the estimator what the hub learnt."""
    from cloister.learn.frame.portable import load

    learnt = load(text)
    if type(learnt) is not type(model):
        raise InvalidParameter("The model is invalid", why="the hub learnt one of another kind", instead="the same version there")
    parameters = [name for name in ("bounds", "bounds_y", "classes") if hasattr(model, name)]
    names = ("n_features_in_", "guarantee_", "spent_", "marked_", "declared_", *type(model).learned_names, *parameters)
    for name in dict.fromkeys(names):
        if hasattr(learnt, name):
            setattr(model, name, getattr(learnt, name))
    model.set_feature_names(learnt.feature_names_in_)


def _some(costs: Mapping[str, Guarantee]) -> list[Guarantee]:
    if not costs:
        raise InvalidParameter(
            "The session's spending was asked for", why="no budget is open to this person", instead="session.tables"
        )
    return list(costs.values())
