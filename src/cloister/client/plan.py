"""What a hub says of a question before it is asked: what would be measured, with which error, at which cost."""

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.printable import escape
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.session.questions.spend import amount_of
from cloister.session.releases.frames import Frame, Series

_KINDS: Mapping[str, type[Guarantee]] = {"epsilon": PureDP, "delta epsilon": ApproxDP, "rho": ZCDP, "delta rho": ZCDP}


def guarantee_from(told: Mapping[str, Any]) -> Guarantee:
    """The exact guarantee that its written form stands for: {"epsilon"}, {"epsilon", "delta"} or {"rho"}, numbers as texts.

    >>> guarantee_from({"epsilon": "0.1", "delta": "1/1000000"}), guarantee_from({"kind": "ZCDP", "rho": "0.5", "delta": "0"})
    (ApproxDP(epsilon='0.1', delta='0.000001'), ZCDP(rho='0.5'))
    """
    given = {name: told[name] for name in ("delta", "epsilon", "rho") if name in told}
    kind = _KINDS.get(" ".join(given))
    if kind is not None and all(isinstance(number, str) for number in given.values()):
        with suppress(InvalidParameter):  # a number that is none
            return kind(**given)
    raise InvalidParameter(
        "The hub's answer is invalid", why="it names a guarantee of no known form", instead="a newer version of cloister"
    )


class RemotePlan:
    """The hub's plan. It spends nothing and no row was read for it.

    >>> told = {"cost": {"kind": "PureDP", "epsilon": "0.1"}, "confidence": 0.95, "margins": {"n": 30.0}, "text": "cost: ε = 0.1"}
    >>> plan = RemotePlan(told, at=lambda confidence: told)
    >>> str(plan.cost), plan.margin()["n"].tolist(), plan
    ('ε = 0.1', [30.0], cost: ε = 0.1)
    """

    def __init__(self, told: Mapping[str, Any], *, at: Callable[[float], Mapping[str, Any]]) -> None:
        self._told = told
        self._at = at
        self._margins = {float(told.get("confidence", 0.95)): _frame(told)}
        costs = told.get("costs", {})
        self.costs: dict[str, Guarantee] = {population: guarantee_from(cost) for population, cost in costs.items()}
        """The charge to each population."""
        self.cost: Guarantee = guarantee_from(told["cost"]) if "cost" in told else max(self.costs.values(), key=amount_of)
        """The charge; with several populations the largest."""
        self.digest = str(told.get("digest", ""))
        """Equal for the same questions, whatever is spent on them."""
        self.repeated = bool(told.get("repeated", False))
        """Whether it was all bought before."""
        self.names: dict[str, str] = dict(told.get("names", {}))
        self.notes: tuple[str, ...] = tuple(told.get("notes", ()))
        self.time_limit = float(told.get("time_limit", 0.0))
        self.denied: str | None = told.get("denied")
        """Why the question would be refused if it were asked now, where that is known."""

    def margin(self, confidence: float = 0.95) -> Frame:
        """The half-width to expect of each statistic in one group; another confidence than the plan's asks the hub again."""
        if confidence not in self._margins:
            self._margins[confidence] = _frame(self._at(confidence))
        return self._margins[confidence]

    def picture(self) -> str:
        """The plan as a picture, in SVG."""
        return str(self._told.get("picture", ""))

    def summary(self) -> dict[str, Any]:
        """Everything as plain data, as the hub told it."""
        return dict(self._told)

    def __str__(self) -> str:
        return str(self._told.get("text", ""))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        drawn = base64.b64encode(self.picture().encode()).decode()  # as an image: no script in it would run
        image = f'<img alt="the plan as a picture; its words follow" src="data:image/svg+xml;base64,{drawn}">' if drawn else ""
        return f"{image}<pre>{escape(str(self))}</pre>"


def _frame(told: Mapping[str, Any]) -> Frame:
    """Margins as a table of one row; what is unknown or has no bound is not a number."""
    margins = told.get("margins", {})
    return Frame(
        {name: Series("real", np.array([np.nan if margin is None else float(margin)])) for name, margin in margins.items()}
    )
