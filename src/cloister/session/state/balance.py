"""What a session has spent and what is left, of the population of each table that it sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter
from cloister.privacy import Guarantee
from cloister.session.questions.spend import amount_of

if TYPE_CHECKING:
    from cloister.ledger import Ledger
    from cloister.session.state.view import Seen


class Balance:
    """The budgets' side of a session.

    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     door.spent_by, str(door.remaining)
    ({'people': PureDP(epsilon='0')}, 'ε = 1')
    """

    ledger: Ledger
    _last: tuple[dict[str, Guarantee], dict[str, Guarantee], tuple[str, ...]] | None = None
    """What was said at the end, for when the ledger is closed."""

    @property
    def seen(self) -> Seen:
        """The tables that this session sees."""
        raise NotImplementedError

    @property
    def spent_by(self) -> dict[str, Guarantee]:
        """What has been spent of each population's budget."""
        if self._last is not None:
            return self._last[0]
        return {population: self.ledger.spent(population) for population in self.seen.populations}

    @property
    def spent(self) -> Guarantee:
        """What has been spent; with several populations, of the one that has spent most."""
        return max(_some(self.spent_by), key=amount_of)

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of each population's budget."""
        if self._last is not None:
            return self._last[1]
        return {population: self.ledger.remaining(population) for population in self.seen.populations}

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The populations of which something left without a guarantee: what is known of those, no number bounds."""
        if self._last is not None:
            return self._last[2]
        return tuple(population for population in self.seen.populations if self.ledger.unbounded(population))

    @property
    def remaining(self) -> Guarantee:
        """What is left; with several populations, of the one that has least."""
        return min(_some(self.remaining_by), key=amount_of)


def _some(costs: Mapping[str, Guarantee]) -> list[Guarantee]:
    if not costs:
        raise InvalidParameter(
            "The session's spending was asked for", why="it has no private table, so there is no budget", instead="session.tables"
        )
    return list(costs.values())
