"""What was asked, in words: the title of an answer that nobody has named.

A title is for finding an answer in a list: the statistics, their keys, and the condition where it is short. What it does not
say is in the SQL, which stands below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from cloister.errors import CloisterError
from cloister.hub.web.languages import N_
from cloister.query.words import statement

_SHORT = 48
"""Signs of a condition that is shown whole."""
_FEW = 3
"""Statistics that are named."""
_OF_COLUMN: dict[type[exp.Expression], str] = {
    exp.Sum: N_("Sum of {name}"),
    exp.Avg: N_("Mean of {name}"),
    exp.Variance: N_("Variance of {name}"),
    exp.VariancePop: N_("Variance of {name}"),
    exp.Stddev: N_("Standard deviation of {name}"),
    exp.StddevSamp: N_("Standard deviation of {name}"),
    exp.StddevPop: N_("Standard deviation of {name}"),
    exp.Min: N_("Minimum of {name}"),
    exp.Max: N_("Maximum of {name}"),
    exp.Median: N_("Median of {name}"),
    exp.Quantile: N_("Quantile of {name}"),
    exp.ApproxQuantile: N_("Quantile of {name}"),
    exp.Mode: N_("Mode of {name}"),
}
_OF_TWO: dict[type[exp.Expression], str] = {
    exp.Corr: N_("Correlation of {first} and {second}"),
    exp.CovarPop: N_("Covariance of {first} and {second}"),
    exp.CovarSamp: N_("Covariance of {first} and {second}"),
}


def asked(sql: str, _: Callable[[str], str]) -> str:
    """A query in words, and nothing where it is of another form.

    >>> asked("SELECT sex, COUNT(*) AS n, AVG(age) FROM people WHERE age > 40 GROUP BY sex", str)
    'Count of people · Mean of age by sex, where age > 40'
    >>> asked("SELECT COUNT(DISTINCT town) FROM people", str), asked("SELECT 1 - AVG(paid) AS late FROM loans", str)
    ('Count of distinct town', 'late')
    >>> asked("a table of a notebook", str)
    ''
    """
    try:
        tree, _options = statement(sql, None)
    except (CloisterError, SqlglotError):
        return ""
    if not isinstance(tree, exp.Select):
        return ""
    measured = [each for each in tree.expressions if each.find(exp.AggFunc, exp.WithinGroup, exp.Anonymous)]
    statistics = list(dict.fromkeys(_statistics(tree, measured, _)))
    if not statistics or not all(statistics):
        return ""
    title = " · ".join(statistics[:_FEW])
    if len(statistics) > _FEW:
        title = _("{statistics} and {count} more").format(statistics=title, count=len(statistics) - _FEW)
    keys = [each.alias_or_name or each.sql() for each in tree.expressions if each not in measured]
    if keys:
        title = _("{statistics} by {keys}").format(statistics=title, keys=", ".join(keys))
    where = tree.args.get("where")
    return _where(title, where, _) if where is not None else title


def _where(title: str, where: exp.Where, _: Callable[[str], str]) -> str:
    condition = where.this.sql()
    if len(condition) > _SHORT:
        return _("{statistics}, with a condition").format(statistics=title)
    return _("{statistics}, where {condition}").format(statistics=title, condition=condition)


def _statistics(tree: exp.Select, measured: list[exp.Expression], _: Callable[[str], str]) -> Iterator[str]:
    """Each statistic by what it is; by the name that its asker gave it, where it is worked out from several."""
    for each in measured:
        found, only = each.unalias(), None
        if isinstance(found, exp.Filter):
            found, only = found.this, found.expression
        name = _statistic(tree, found, _) or each.alias
        yield _where(name, only, _) if name and only is not None else name


def _statistic(tree: exp.Select, found: exp.Expression, _: Callable[[str], str]) -> str:
    if isinstance(found, exp.Count):
        return _count(tree, found, _)
    if isinstance(found, exp.WithinGroup):
        column = found.expression.find(exp.Column)
        return _("Quantile of {name}").format(name=column.name) if column is not None else ""
    names = [each.name for each in (found.this, found.args.get("expression")) if isinstance(each, exp.Column)]
    if type(found) in _OF_COLUMN and names:
        return _(_OF_COLUMN[type(found)]).format(name=names[0])
    if type(found) in _OF_TWO and len(names) == 2:
        return _(_OF_TWO[type(found)]).format(first=names[0], second=names[1])
    return ""


def _count(tree: exp.Select, found: exp.Count, _: Callable[[str], str]) -> str:
    counted = found.this
    if isinstance(counted, exp.Distinct):
        names = [each.name for each in counted.expressions]
        return _("Count of distinct {name}").format(name=", ".join(names)) if all(names) else ""
    if isinstance(counted, exp.Column):
        return _("Count of {name}").format(name=counted.name)
    source = tree.args.get("from_") or tree.args.get("from")
    table = source.this if source is not None else None
    if isinstance(table, exp.Table) and not tree.args.get("joins"):
        return _("Count of {name}").format(name=table.name)
    return _("Count of rows")
