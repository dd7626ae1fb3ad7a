"""Searches by name, loaded when they are first asked for."""

from collections.abc import Mapping
from importlib import import_module
from inspect import signature

from cloister.anonymize.problem import Search
from cloister.errors import InvalidParameter

SEARCHES = {
    "optimal": ("lattice", "OptimalLattice"),
    "mondrian": ("mondrian", "Mondrian"),
    "local": ("local", "LocalRecoding"),
    "topdown": ("topdown", "TopDown"),
    "greedy": ("greedy", "Greedy"),
    "microaggregation": ("clusters", "Clusters"),
}


def search_of(search: str | Search, aggregates: Mapping[str, str] | None = None) -> Search:
    """A search by its name; one that is at hand already stays as it is.

    >>> search_of("mondrian").name
    'mondrian'
    """
    if isinstance(search, Search):
        if aggregates:
            raise InvalidParameter(
                "aggregates=… is invalid", why="the search is given, and has its own", instead="Mondrian(aggregates={…})"
            )
        return search
    if not isinstance(search, str) or search not in SEARCHES:
        raise InvalidParameter(
            f"search={search!r} is invalid", why="it is not one of " + ", ".join(SEARCHES), instead='search="optimal"'
        )
    module, name = SEARCHES[search]
    kind: type[Search] = getattr(import_module(f"cloister.anonymize.searches.{module}"), name)
    if not aggregates:
        return kind()
    if "aggregates" not in signature(kind).parameters:
        raise InvalidParameter(
            "aggregates=… is invalid",
            why=f"search={search!r} writes the labels of hierarchies",
            instead='search="mondrian" or search="microaggregation"',
        )
    return kind(aggregates=dict(aggregates))  # type: ignore[call-arg]
