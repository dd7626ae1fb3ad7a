"""Models that a hub learns: what an order says of one as plain data, and the model from its portable text.

What comes back is what left there: released values, and public facts. No code travels in either direction.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter
from cloister.privacy import ZCDP, ApproxDP, PureDP, exact_positive, text_of

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel
    from cloister.session.questions.spend import Spending

_OF_THE_FIT = frozenset({"epsilon", "delta", "bounds", "bounds_y", "classes", "privacy", "random"})
"""What follows there from the declarations and from the spend."""


def written(spend: Spending) -> dict[str, str]:
    """A spend as it travels: exact, and with its kind.

    >>> written(PureDP("0.1")), written(1)
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


def parameters_of(model: PrivateModel) -> dict[str, Any]:
    """The method's own parameters where they are not what they are by themselves."""
    usual = type(model)().get_params(deep=False)
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in _OF_THE_FIT}
    return {name: _plain(name, value) for name, value in given.items() if value is not usual[name] and value != usual[name]}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(name, each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidParameter(
        f"{name}={value!r} is invalid", why="a hub takes numbers, texts and lists of them", instead=f"the model without {name}="
    )


def fill(model: PrivateModel, text: str) -> None:
    """Make the estimator what the hub learnt."""
    from cloister.learn.frame.portable import load

    learnt = load(text)
    if type(learnt) is not type(model):
        raise InvalidParameter("The model is invalid", why="the hub learnt one of another kind", instead="the same version there")
    parameters = [name for name in ("bounds", "bounds_y", "classes") if hasattr(model, name)]
    names = ("n_features_in_", "guarantee_", "spent_", "marked_", *type(model).learned_names, *parameters)
    for name in dict.fromkeys(names):
        if hasattr(learnt, name):
            setattr(model, name, getattr(learnt, name))
    model.set_feature_names(learnt.feature_names_in_)
