"""What the settings of an algorithm mean where a model is trained: a method, and its parameters.

`{"method": "Ridge", "parameters": {"alpha": "0.5"}}` is ridge regression with that parameter, and the method's own values of all
others: an order under it leaves both to the algorithm, or says the same. Without settings the algorithm is training as such, by
any method.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidDeclaration, InvalidParameter
from cloister.hub.decisions.policy.methods import check_methods, offered
from cloister.hub.decisions.policy.strict import only
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import contradicted, named_algorithm
from cloister.hub.services.learning.order import Training, class_of, model_of
from cloister.hub.web.languages import N_

ACTION, NAME = "learn.run", "learning"
"""The policy's name for training, and that of this service."""


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings under which no model could be ordered.

    >>> check_settings({"method": "Ridge", "parameters": {"alpha": "0.5"}})
    >>> check_settings({"parameters": {"alpha": "0.5"}})
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: settings is invalid: they name no method.
      Instead: {"method": "Ridge", "parameters": {"alpha": "0.5"}}
    """
    if not settings:
        return
    example = '{"method": "Ridge", "parameters": {"alpha": "0.5"}}'
    only(settings, "settings", ("method", "parameters"))
    method = settings.get("method")
    if not isinstance(method, str) or not isinstance(settings.get("parameters", {}), Mapping):
        raise InvalidDeclaration("settings is invalid", why="they name no method", instead=example)
    check_methods([method])
    target = "y" if offered()[method].task in ("classes", "numbers") else ""
    wanted = Training(table="t", method=method, features=("x",), target=target, spend="1", parameters=_parameters(settings))
    try:
        model_of(wanted)
    except CloisterError as error:
        why = N_("{what}: {why}").format(what=error.what, why=error.why)
        raise InvalidDeclaration("settings is invalid", why=why, instead=error.instead) from None


def settled(hub: Hub, db: Db, caller: Caller, order: Training) -> Training:
    """An order with what its algorithm says; refused where that is missing, or says otherwise. An order that is settled stays."""
    if not order.algorithm:
        return order
    row = named_algorithm(hub, db, caller, order.algorithm, NAME)
    if not row.settings:
        if not order.method:
            raise InvalidParameter(
                "The method is invalid",
                why=f"none is named, and the algorithm {row.name!r} names none: it leaves that open",
                instead='method="GaussianNB"',
            )
        return replace(order, algorithm=row.id)
    method, parameters = row.settings["method"], _parameters(row.settings)
    if order.method not in ("", method):
        raise contradicted(row, f"The method {order.method[:60]!r} is invalid", f"{method}, or no method")
    said = {**class_of(method)().get_params(deep=False), **parameters}
    for name, value in order.parameters.items():
        if name not in said or _listed(said[name]) != _listed(value):
            raise contradicted(row, f"The parameter {name[:60]!r} is invalid", "no parameters")
    return replace(order, algorithm=row.id, method=method, parameters=parameters)


def _parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """As an order has them: settings are kept with exact texts for what is no whole number."""
    kept = settings.get("parameters", {})
    defaults = class_of(settings["method"])().get_params(deep=False)
    return {name: value if isinstance(defaults.get(name), str) else _number(value) for name, value in kept.items()}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
