"""The methods by which a hub trains models: what grants and rules of the institution name, and orders choose from."""

from collections.abc import Iterable

from cloister.errors import InvalidDeclaration
from cloister.learn.frame.catalogue import METHODS, Method

_NOTHING_TO_LEARN = "BoundedScaler"


def offered() -> dict[str, Method]:
    """The methods that are trained here, by name.

    >>> offered()["GaussianNB"].title, "BoundedScaler" in offered()
    ('Gaussian naive Bayes', False)
    """
    return {name: method for name, method in METHODS.items() if name != _NOTHING_TO_LEARN}


def titled() -> list[tuple[str, str]]:
    """Each by its name and its title, in the order in which they are offered.

    >>> titled()[0]
    ('GaussianNB', 'Gaussian naive Bayes')
    """
    return [(name, method.title) for name, method in offered().items()]


def check_methods(names: Iterable[str] | None) -> None:
    """Refuse a list in which one is not known: misspelled, it would close what is meant to be open.

    >>> check_methods(["GausianNB"])
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: methods is invalid: 'GausianNB' is not a training method of this hub.
      Instead: GaussianNB, CategoricalNB, ...
    """
    unknown = sorted(set(names or ()) - offered().keys())
    if unknown:
        raise InvalidDeclaration(
            "methods is invalid", why=f"{unknown[0][:60]!r} is not a training method of this hub", instead=", ".join(offered())
        )
