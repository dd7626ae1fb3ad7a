"""What people bring from ZetaSQL and BigQuery: `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…)`, and bounds within aggregates.

They are found among the words of a question before it is parsed. `epsilon` and `delta` are what the question may cost, where the
caller names no spend; `max_groups_contributed` caps the groups in which one unit may count; `contribution_bounds_per_group =>
(low, high)` clamps what one unit adds to one group, `contribution_bounds_per_row` what one row adds. The older spelling means the
same: `SELECT WITH ANONYMIZATION OPTIONS (kappa = 2) … ANON_SUM(cost CLAMPED BETWEEN 0 AND 100)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot.tokens import Token, TokenType

from cloister.errors import InvalidParameter
from cloister.privacy import ApproxDP, Guarantee, PureDP, exact
from cloister.query.refusals import clipped, refused, whole

BOUNDED = {name: f"CLOISTER_{name}" for name in ("SUM", "AVG", "COUNT")}
"""What an aggregate with bounds among its arguments is called while it is parsed."""
_OF_ROWS = "APPROX_QUANTILES PERCENTILE_CONT QUANTILE VAR_POP VAR_SAMP VARIANCE STDDEV_POP STDDEV_SAMP STDDEV"
BY_ROW = {name: f"CLOISTER_ROW_{name}" for name in _OF_ROWS.split()}
"""The same for those of which each row's value is bounded."""
_BOUNDS = ("contribution_bounds_per_group", "contribution_bounds_per_row")
_LINE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 3) …"
_IGNORED = ("group_selection_strategy", "min_privacy_units_per_group")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What OPTIONS (…) says.

    >>> str(Options(epsilon=Fraction(1), delta=Fraction(1, 10**6)).spend)
    'ε = 1, δ = 1e-06'
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    groups: int | None = None
    rows: int | None = None
    unit: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def spend(self) -> Guarantee | None:
        """The cost that epsilon and delta name."""
        if self.epsilon is None:
            return None
        return PureDP(self.epsilon) if not self.delta else ApproxDP(self.epsilon, self.delta)


def taken(tokens: Sequence[Token]) -> tuple[list[Token], Options]:
    """The words without OPTIONS (…), and what it said; aggregates with bounds renamed.

    >>> import sqlglot
    >>> words = sqlglot.tokenize("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) FROM people")
    >>> rest, options = taken(words)
    >>> " ".join(word.text for word in rest), options.epsilon
    ('SELECT COUNT ( * ) FROM people', Fraction(1, 2))
    """
    tokens = _older(tokens)
    _rename_bounded(tokens)
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        words = [each.text.upper() for each in tokens[at : at + 4]]
        if words[1:3] in (["WITH", "DIFFERENTIAL_PRIVACY"], ["WITH", "ANONYMIZATION"]) and token.token_type is TokenType.SELECT:
            if depth:
                raise refused(
                    "WITH DIFFERENTIAL_PRIVACY is not supported", "it stands in a question within the question", f"WITH … {_LINE}"
                )
            if words[3:] != ["OPTIONS"]:
                return [*tokens[: at + 1], *tokens[at + 3 :]], Options()
            end = _closing(tokens, at + 4)
            return [*tokens[: at + 1], *tokens[end + 1 :]], _options(tokens[at + 5 : end])
    return list(tokens), Options()


def _rename_bounded(tokens: Sequence[Token]) -> None:
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            opened.append(at)
        elif token.token_type is TokenType.R_PAREN and opened:
            opened.pop()
        elif token.token_type is TokenType.FARROW and opened and opened[-1] > 0:
            function = tokens[opened[-1] - 1]
            bound, name = tokens[at - 1].text.lower(), function.text.upper()
            if bound in _BOUNDS and name in BOUNDED:
                function.text = BOUNDED[name]
            elif bound == "contribution_bounds_per_row" and name in BY_ROW:
                function.text, function.token_type = BY_ROW[name], TokenType.VAR


def _older(tokens: Sequence[Token]) -> list[Token]:
    """ANON_SUM(x CLAMPED BETWEEN 0 AND 100) as SUM(x, contribution_bounds_per_group => (0, 100)).

    >>> import sqlglot
    >>> " ".join(word.text for word in _older(sqlglot.tokenize("SELECT ANON_SUM(x CLAMPED BETWEEN 0 AND 9)")))
    'SELECT SUM ( x , contribution_bounds_per_group => ( 0 , 9 ) )'
    """
    found: list[Token] = []
    opened: list[tuple[str, bool]] = []  # the name of each open function of the older kind, and whether its bounds began

    def put(kind: TokenType, text: str, like: Token) -> None:
        found.append(Token(kind, text, like.line, like.col, like.start, like.end))

    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        name = token.text.upper()
        if name.startswith("ANON_") and after is not None and after.token_type is TokenType.L_PAREN and name[5:] in _OLDER:
            put(TokenType.VAR, name[5:], token)
        elif token.token_type is TokenType.L_PAREN:
            before = found[-1].text.upper() if found else ""
            opened.append((before if before in _OLDER else "", False))
            found.append(token)
        elif token.token_type is TokenType.R_PAREN and opened:
            if opened.pop()[1]:
                put(TokenType.R_PAREN, ")", token)
            found.append(token)
        elif name == "CLAMPED" and opened and opened[-1][0] and after is not None and after.token_type is TokenType.BETWEEN:
            put(TokenType.COMMA, ",", token)
            put(TokenType.VAR, _OLDER[opened[-1][0]], token)
            put(TokenType.FARROW, "=>", token)
            put(TokenType.L_PAREN, "(", token)
            opened[-1] = opened[-1][0], True
        elif token.token_type is TokenType.BETWEEN and opened and opened[-1][1]:
            continue
        elif token.token_type is TokenType.AND and opened and opened[-1][1]:
            put(TokenType.COMMA, ",", token)
        else:
            found.append(token)
    return found


_OLDER = dict.fromkeys(("SUM", "AVG", "COUNT"), "contribution_bounds_per_group")
_OLDER |= dict.fromkeys(("VAR_POP", "STDDEV_POP", "PERCENTILE_CONT"), "contribution_bounds_per_row")
"""What bounds mean in the older spelling: of what a person adds to a group, or of each row."""


def _closing(tokens: Sequence[Token], opening: int) -> int:
    if opening < len(tokens) and tokens[opening].token_type is TokenType.L_PAREN:
        for at in range(opening + 1, len(tokens)):
            if tokens[at].token_type is TokenType.R_PAREN:
                return at
    raise refused("OPTIONS is not supported", "it is not a list in parentheses", _LINE)


def _options(tokens: Sequence[Token]) -> Options:
    written: dict[str, str] = {}
    entry: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.COMMA:
            entry.append(token)
            continue
        if entry:
            said = entry[2:]
            digits = len(said) > 1 and all(each.token_type in (TokenType.NUMBER, TokenType.DOT) for each in said)  # .5 is two
            named = len(entry) > 2 and entry[1].token_type is TokenType.EQ and entry[0].text.lower() not in written
            if not named or not (len(said) == 1 or digits):
                raise refused("OPTIONS is not supported", "an entry is not name = value, once", _LINE)
            written[entry[0].text.lower()] = "".join(each.text for each in said)
        entry = []
    return _read(written)


def _read(written: dict[str, str]) -> Options:
    if "kappa" in written and "max_groups_contributed" not in written:  # its older name
        written["max_groups_contributed"] = written.pop("kappa")
    known = ("epsilon", "delta", "max_groups_contributed", "max_rows_contributed", "privacy_unit_column", *_IGNORED)
    strange = [name for name in written if name not in known]
    if strange:
        raise refused(f"The option {clipped(strange[0])} is not supported", f"known are {', '.join(known)}", _LINE)
    return Options(
        epsilon=_fraction(written, "epsilon"),
        delta=_fraction(written, "delta"),
        groups=_count(written, "max_groups_contributed"),
        rows=_count(written, "max_rows_contributed"),
        unit=written.get("privacy_unit_column"),
        notes=tuple(f"the option {name} was not needed and is not used" for name in _IGNORED if name in written),
    )


def _fraction(written: dict[str, str], name: str) -> Fraction | None:
    if name not in written:
        return None
    try:
        value = exact(written[name], name)
    except InvalidParameter:
        value = Fraction(-1)
    if value < 0 or (name == "epsilon" and value == 0) or (name == "delta" and value >= 1):
        raise refused(f"The option {name} is not supported", "it is not a number that a spend can have", _LINE)
    return value


def _count(written: dict[str, str], name: str) -> int | None:
    if name not in written or written[name].upper() == "NULL":
        return None
    value = whole(written[name])
    if not value or value > 2**31 - 1:
        raise refused(f"The option {name} is not supported", "it must be a whole number from 1 to 2^31-1", _LINE)
    return value
