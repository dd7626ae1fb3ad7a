"""What an author writes: a function, the columns that it reads, what it may return, and the way in which it runs.

>>> import cloister as cl
>>> @cl.guest(inputs=["age"], output=cl.Vector([(0, 120)], names=["age"]), way="blocks", blocks=20, seconds=0.02)
... def middle(rows):
...     ages = sorted(rows["age"])
...     return [ages[len(ages) // 2]]
>>> people = cl.PrivateTable({"age": [30, 40, 50] * 200}, columns={"age": cl.Integer(17, 90)})
>>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
...     found = middle.run(session, "people", spend=1)
>>> sorted(found.values), str(found.cost)
(['age'], 'ε = 1')
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from cloister.errors import AccessDenied, InvalidParameter, UnknownTable, check_one_of
from cloister.guests.asking import Answers, Sharing, asking
from cloister.guests.blocks import Blocks, Failed, MadeUp, Statistic, blocks_of, made_up, number_of, quantile_of
from cloister.guests.code import check_code, digest_of, text_of
from cloister.guests.declared import Admission, Declared, HostNoise, terms
from cloister.guests.outputs import Vector
from cloister.guests.sandbox.environments import environment
from cloister.guests.sandbox.opening import Needs
from cloister.guests.sandbox.processes import Language
from cloister.guests.sandbox.wasm import Ran
from cloister.noise import Random
from cloister.printable import json_of, shown
from cloister.privacy import Guarantee, PureDP
from cloister.session import Door, Outcome, RunPlan
from cloister.session.execution.rehearsal import rehearsal_tables
from cloister.session.questions.spend import Spending, spend_of
from cloister.tables import PrivateTable

Way: TypeAlias = Literal["blocks", "ask", "declared"]
_SECONDS, _MOST_SECONDS, _MEMORY, _MOST_RUNS = 0.05, 60.0, 256, 10_000


@dataclass(frozen=True, kw_only=True)
class Result:
    """What left of a run, with its cost and the margin of its noise (95 %); how blocks differ among each other is not in it.

    >>> from cloister.privacy import PureDP
    >>> print(Result(guest="oldest", way="blocks", values={"age": 71.2}, margins={"age": 3.1}, cost=PureDP(1), digest="…"))
    oldest by blocks, ε = 1
      age  71.2 ± 3.1
    """

    guest: str
    way: Way
    values: Any
    margins: Mapping[str, float]
    cost: Guarantee
    digest: str
    marked: bool = False
    asked: tuple[str, ...] = ()
    """Way "ask": the questions, in their order."""
    provenance: str = ""
    """Who admitted it, and what it was audited to."""
    why: str = ""
    """Why the code returned nothing, if it did not (way "ask"), or that it may have returned nothing (way "declared")."""
    failed: Failed | None = None
    """By blocks: how many of them gave no value."""
    beyond: bool = False
    """Way "ask": whether it asked for tables or columns that are not there for it."""

    def __str__(self) -> str:
        lines = [f"{self.guest} by {self.way}, {self.cost}"]
        if isinstance(self.values, Mapping) and self.values:
            far = {name: f" ± {margin:.6g}" for name, margin in self.margins.items()}
            lines += [f"  {name}  {_written(value)}{far.get(name, '')}" for name, value in self.values.items()]
        elif self.values is not None or not self.why:
            lines.append(f"  {_written(self.values)}")
        if self.failed:
            lines.append(f"  {self.failed}")
        if self.provenance:
            lines.append(f"  {self.provenance}")
        if self.why:
            lines.append(f"  it {'may have ' * (self.way == 'declared')}returned nothing: {self.why}")
        return shown("\n".join(lines), lines=True)


@dataclass(frozen=True, kw_only=True)
class Guest:
    """An algorithm and all that is declared of it.

    Parameters
    ----------
    code, entry
        The text, and the function of it that is called. Pure Python, with the modules of `sandbox/app.py`.
    inputs
        The columns that it reads. Way "blocks" calls `entry(rows)`, a list of values for each column of one block; way "ask"
        calls `entry(about)` with the declared columns, and gives it `ask(sql, spend)`.
    output
        What it returns: so many numbers within bounds. Way "ask" may return whatever JSON holds, and needs none.
    blocks, statistic
        Into how many parts people fall (n^0.4 by the declared size if it is left out), and whether what is said of them is
        averaged, or which quantile is taken ("median", "q90").
    seconds, memory
        For one run, and in MiB. An answer comes after some `blocks` × (`seconds` + 0.15 s), whatever happened.
    language, packages, environment
        "r", or modules such as `["numpy", "sklearn.linear_model"]`, of a named environment that an administrator built or of
        those beside cloister: such a guest runs in a process of the machine, and only when somebody who read it says so
        (`admitted=` of `run`).
    author, mechanism, proof
        Way "declared": whose it is, which mechanism it claims to be, and why it keeps the spend. It calls `entry(rows, spend)`
        once with all rows, and draws its noise by `noise("laplace", scale)` or `noise("gaussian", scale)`.

    >>> from cloister import Guest, Vector
    >>> code = "def oldest(rows):\\n    return [max(rows['age'])]\\n"
    >>> Guest(code=code, entry="oldest", inputs=["age"], output=Vector([(0, 120)])).describe()["inputs"]
    ['age']
    """

    code: str
    entry: str
    inputs: Sequence[str] = ()
    output: Vector | None = None
    way: Way = "blocks"
    blocks: int | None = None
    statistic: Statistic = "mean"
    seconds: float = _SECONDS
    memory: int = _MEMORY
    name: str = ""
    language: Language = "python"
    packages: Sequence[str] = ()
    environment: str = ""
    author: str = ""
    mechanism: str = ""
    proof: str = ""
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_choice("language", self.language, ("python", "r"))
        for name in ("name", "author", "mechanism", "proof"):
            if not isinstance(getattr(self, name), str):
                raise InvalidParameter(f"{name}= is invalid", why="it is not text", instead=f'{name}="Pia"')
        object.__setattr__(self, "packages", _modules(self.packages, self.language))
        if not isinstance(self.environment, str) or (self.environment and not self.packages):
            raise InvalidParameter(
                f"environment={self.environment!r} is invalid",
                why="it is the name of one, of which packages= names modules",
                instead='packages=["numpy"], environment="statistics"',
            )
        check_code(self.code, self.entry, self.language)
        object.__setattr__(self, "inputs", _columns(self.inputs, self.way))
        object.__setattr__(self, "name", self.name or self.entry)
        _check_choice("way", self.way, ("blocks", "ask", "declared"))
        quantile_of(self.statistic)
        if self.way != "blocks" and self.needs.native:
            raise InvalidParameter(
                "packages= is invalid",
                why="a guest that asks or is declared talks to the host, and is pure Python",
                instead='way="blocks", or no packages',
            )
        if self.way == "declared" and not all(each.strip() for each in (self.author, self.mechanism, self.proof)):
            raise InvalidParameter(
                "The declaration is invalid",
                why="a declared mechanism names its author and itself, and says why it keeps the spend",
                instead='author="Pia", mechanism="Laplace", proof="One person moves the sum by at most 100: …"',
            )
        if not isinstance(self.output, Vector) and (self.output is not None or self.way != "ask"):
            what = "output= is missing" if self.output is None else "output= is invalid"
            raise InvalidParameter(what, why="what leaves is held within declared bounds", instead="cl.Vector([(0, 120)])")
        for name, value, most in (("seconds", self.seconds, _MOST_SECONDS), ("memory", self.memory, 1024)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.001 <= value <= most:
                raise InvalidParameter(f"{name}={value!r} is invalid", why=f"it is from 0.001 to {most:g}", instead=f"{name}=1")
        object.__setattr__(self, "memory", int(self.memory) or 1)
        if self.blocks is not None:
            number_of(self.blocks, None)

    @property
    def needs(self) -> Needs:
        """What of a machine it runs on."""
        return Needs(language=self.language, packages=tuple(self.packages), environment=self.environment)

    @property
    def digest(self) -> str:
        """A name of the code, of all that is declared of it, and of every file of its environment, where it names one."""
        about = [self.entry, json.dumps(self.describe(), sort_keys=True)]
        return digest_of(self.code, [*about, environment(self.environment).digest] if self.environment else about)

    def describe(self) -> dict[str, Any]:
        """The declaration as plain data."""
        about: dict[str, Any] = {"name": self.name, "entry": self.entry, "inputs": list(self.inputs), "way": self.way}
        about |= {"output": None if self.output is None else self.output.describe()}
        about |= {"blocks": self.blocks, "statistic": self.statistic, "seconds": self.seconds, "memory": self.memory}
        if self.way == "declared":
            about |= {"author": self.author, "mechanism": self.mechanism, "proof": self.proof}
        if self.environment:
            about |= {"environment": self.environment}
        return about | {"language": self.language, "packages": list(self.packages)} if self.needs.native else about

    def __call__(self, *arguments: Any) -> Any:
        """The function itself, as at home."""
        if self.function is None:
            raise InvalidParameter(f"{self.name} is invalid", why="it was made of a text", instead=f"{self.name}.run(session, …)")
        return self.function(*arguments)

    def explain(self, session: Door, table: str, spend: Spending) -> tuple[RunPlan, dict[str, float]]:
        """What a run would cost (where it asks, at most), and the margins of noise in blocks: spends nothing, reads no row."""
        declaration = _declared(session, table)
        if self.way == "ask":
            population, budget = session.population_of(table)
            return RunPlan(population=population, cost=spend_of(spend, budget).whole(), digest=self.digest), {}
        method = self.method(declaration)
        plan = session.explain_run(method, table, spend)
        return plan, method.margins(plan.cost) if isinstance(method, Blocks) else {}

    def check_admitted(self, admitted: str | Admission, table: PrivateTable) -> None:
        """Refuses a declared mechanism or native code that nobody admitted, or that is another version now; of a declared
        mechanism also one whose audit is of other code or another declaration, or did not pass."""
        declared = self.way == "declared"
        named = admitted.digest if isinstance(admitted, Admission) else admitted
        if (self.needs.native or declared) and named != self.digest:
            raise AccessDenied(
                f"{self.name} was not run",
                why="native code is run only for someone who read it and names its digest"
                if not admitted
                else "what was admitted is another version",
                instead="admitted=admit(guest, …)" if declared else f'admitted="{self.digest}"',
            )
        if declared:
            why = "two people admit a declared mechanism to rows, after an audit"
            if why := admitted.why_not(self, table) if isinstance(admitted, Admission) else why:
                instead = "cloister guest review, and admitted=admit(guest, …) with the names of two people who read it"
                raise AccessDenied(f"{self.name} was not run", why=why, instead=instead)

    def run(self, session: Door, table: str, spend: Spending, *, purpose: str = "", admitted: str | Admission = "") -> Result:
        """The private result, for the spend.

        Guarantee: the spend, whatever the code does. By blocks it is charged whole (`blocks.py` has the proof); by "ask" it is a
        share, of which the questions are charged one by one (`asking.py`).
        """
        declaration = _declared(session, table)
        self.check_admitted(admitted, declaration)
        wanted = purpose or f"guest {self.name}"
        if self.way == "ask":
            return self.by_asking(session, table, spend, purpose=wanted)
        method = self.method(declaration)
        with method.open() as sandbox:
            outcome = session.run(replace(method, opened=sandbox), table, spend, purpose=wanted)
        return self.result(method, outcome, f"declared by {self.author}, {admitted}" if self.way == "declared" else "")

    def result(self, method: Blocks | Declared, outcome: Outcome, provenance: str) -> Result:
        """What the door gave of it, as its reader sees it."""
        values, failed, why, margins = outcome.values, None, "", dict[str, float]()
        if isinstance(method, Blocks):
            (values, failed), margins = method.told(values, outcome.cost), method.margins(outcome.cost)
        elif values == method.output.values(method.output.codes(None).astype(float)):
            why = "every number is the middle of its range, which stands in for what is not declared"
        about: dict[str, Any] = {"guest": self.name, "way": self.way, "digest": self.digest, "provenance": provenance}
        return Result(**about, values=values, margins=margins, failed=failed, cost=outcome.cost, marked=outcome.marked, why=why)

    def by_asking(self, session: Sharing, table: str, spend: Spending, *, purpose: str = "", tick: float = 0.0) -> Result:
        """Way "ask", within a share of whatever gives one; answers come to the code at multiples of `tick` seconds."""
        (ran, answers), cost = asking(session, table, spend, purpose, self._asked, tick=tick)
        about: dict[str, Any] = {"guest": self.name, "way": self.way, "digest": self.digest}
        return Result(
            **about, values=ran.value, margins={}, cost=cost, asked=tuple(answers.asked), why=ran.why, beyond=answers.beyond
        )

    def rehearsed(self, declaration: PrivateTable, *, rows: int | None = None, most: int = _MOST_RUNS) -> MadeUp:
        """How many runs a rehearsal makes, and on how many rows: on so many as a run, by `rows`, or the declared `size=`."""
        blocks = number_of(self.blocks, declaration.size or rows) if self.way == "blocks" else 1
        return made_up(blocks, rows or declaration.size, most=most)

    def rehearse(self, session: Door, table: str, *, rows: int | None = None, most: int = _MOST_RUNS) -> list[Ran]:
        """Runs on made-up rows that follow the declarations, with what each printed and where it failed: for its author, free.

        By blocks a run for each block, or for `most` of them, each as large as in a run on so many rows (`rehearsed`); by "ask"
        one, whose answers come from such rows.
        """
        declaration = _declared(session, table)
        size = self.rehearsed(declaration, rows=rows, most=most)
        made = rehearsal_tables({table: declaration}, rows=None if self.way == "ask" else size.total)[table]
        assert isinstance(made, PrivateTable)
        with type(session)({table: made}, budget=session.population_of(table)[1]) as trial:
            if self.way == "ask":
                return [asking(trial, table, trial.remaining_by[trial.population_of(table)[0]], "", self._asked)[0][0]]
            method, random = self.method(made), Random.deterministic(1)
            held = trial.prepared(table).rows(list(method.columns), unit=True)
            with method.open(paced=False) as sandbox:
                if isinstance(method, Declared):
                    told = terms(trial.remaining_by[trial.population_of(table)[0]])
                    [block] = blocks_of(held, made, method.inputs, 1, random)
                    return [sandbox.run([block, told], ask=HostNoise(random))]
                return list(method.runs(sandbox, blocks_of(held, made, method.inputs, size.runs, random)))

    def why_not(self, ran: Ran) -> str:
        """Why a run on made-up rows gave nothing that counts: it failed, or returned another shape than it declares.

        >>> from cloister import Vector
        >>> code = "def f(rows):\\n    return 'x'\\n"
        >>> Guest(code=code, entry="f", inputs=["age"], output=Vector([(0, 1)])).why_not(Ran(value="x", done=True))
        'it returned "x", and not 1 number'
        """
        if not ran.done:
            return ran.why
        return "" if self.output is None or self.way == "ask" else self.output.why_not(ran.value)

    def made_up(self, table: PrivateTable) -> dict[str, list[Any]]:
        """Made-up rows that follow the declarations, as the code would be given them."""
        made = rehearsal_tables({"table": table})["table"]
        assert isinstance(made, PrivateTable)
        from cloister.query import Session

        with Session({"table": made}, budget=PureDP(1)) as trial:
            rows = trial.prepared("table").rows(list(self.inputs), unit=True)
        return next(blocks_of(rows, made, tuple(self.inputs), 1, Random.deterministic(1)))

    def method(self, declaration: PrivateTable) -> Blocks | Declared:
        """The guest as a method for the door."""
        return Declared(**self._about()) if self.way == "declared" else self.by_blocks(declaration)

    def by_blocks(self, declaration: PrivateTable) -> Blocks:
        """The guest as a method over blocks of this table's people."""
        blocks = number_of(self.blocks, declaration.size)
        return Blocks(**self._about(), blocks=blocks, statistic=self.statistic, needs=self.needs)

    def _about(self) -> dict[str, Any]:
        assert self.output is not None
        about = {"code": self.code, "entry": self.entry, "digest": self.digest, "inputs": tuple(self.inputs)}
        return {**about, "output": self.output, "seconds": self.seconds, "memory": self.memory << 20}

    def _asked(self, answers: Answers, about: dict[str, Any]) -> tuple[Ran, Answers]:
        with self.needs.sandbox(self.code, self.entry, seconds=self.seconds, memory=self.memory << 20) as sandbox:
            return sandbox.run([about], ask=answers), answers


def guest(
    *,
    inputs: Sequence[str] = (),
    output: Vector | None = None,
    way: Way = "blocks",
    uses: Sequence[Callable[..., Any]] = (),
    **how: Any,
) -> Callable[[Callable[..., Any]], Guest]:
    """Makes a function a guest (`Guest` has the parameters). Its text is taken, and that of the helpers in `uses`; what else is
    in its module stays at home.

    >>> from cloister.guests import ask
    >>> @guest(way="ask")
    ... def total(about):
    ...     return ask(f"SELECT COUNT(*) AS n FROM {about['table']}", "0.5")["columns"]["n"][0]
    >>> total.entry, total.way
    ('total', 'ask')
    """

    def made(function: Callable[..., Any]) -> Guest:
        code = "\n\n".join(text_of(each) for each in (*uses, function))
        return Guest(code=code, entry=function.__name__, inputs=inputs, output=output, way=way, function=function, **how)

    return made


def _written(value: Any) -> str:
    """A number for a reader; what else a guest returns, as JSON."""
    return f"{value:.6g}" if isinstance(value, float) else json_of(value, default=str)


def _declared(session: Door, table: str) -> PrivateTable:
    declaration = session.declared(table)
    if not isinstance(declaration, PrivateTable):
        raise UnknownTable(
            f"{table!r} is invalid", why="it is a public table: nothing needs hiding", instead="its rows as they are"
        )
    return declaration


def _columns(inputs: Any, way: str) -> tuple[str, ...]:
    named = isinstance(inputs, Sequence) and not isinstance(inputs, str) and all(isinstance(each, str) for each in inputs)
    if not named or len(set(inputs)) < len(inputs):
        raise InvalidParameter("inputs= is invalid", why="it is a list of columns, none twice", instead='inputs=["age"]')
    if way != "ask" and not inputs:
        raise InvalidParameter("inputs= is missing", why="a guest near rows reads at least one column", instead='inputs=["age"]')
    return tuple(inputs)


def _modules(packages: Any, language: str) -> tuple[str, ...]:
    named = isinstance(packages, Sequence) and not isinstance(packages, str) and len(packages) <= 50
    if not named or not all(isinstance(each, str) and all(part.isidentifier() for part in each.split(".")) for each in packages):
        raise InvalidParameter(
            "packages= is invalid",
            why="it is a list of at most 50 names of modules",
            instead='packages=["numpy", "sklearn.linear_model"]',
        )
    if packages and language != "python":
        raise InvalidParameter("packages= is invalid", why="it names modules of Python", instead="library(…) in the code")
    return tuple(packages)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    check_one_of(value, name, choices, why="there is no such choice", instead=" or ".join(map(repr, choices)))
