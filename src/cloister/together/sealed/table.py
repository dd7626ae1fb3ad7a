"""A table whose rows are masked cells at the hub: asked like any table, answered with the help of a key holder.

Guarantee: the one that a session states, towards anyone who sees its answers; towards the hub itself, and towards the key holder
itself, the same (the lemma of `holder.py`), as long as the two don't collude. In each number is the noise of both, so its
variance is twice that of one central noise; the answer names that law. What the format has no cells for is refused by name before
anything is charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cloister.errors import EngineError, InvalidDeclaration, UnsupportedQuery
from cloister.noise import Random
from cloister.tables import Abilities, Answering, Prepared, PrivateTable, PublicTable, Relation, Workspace
from cloister.tables.engines.engine import Compiled
from cloister.tables.engines.noised import Noised, NoisedRequest
from cloister.tables.sourcing.sources import Source
from cloister.together.plan import Elsewhere, Plan, check_words, shapes_of, token_of
from cloister.together.sealed.batches import Batch, Ranges, in_order, withdrawn_by, without
from cloister.together.sealed.format import MaskedFormat
from cloister.together.sealed.holder import SealedPlan, noise_of, shares_of_two
from cloister.together.sealed.sums import SumReader, check_room, sizes_of

if TYPE_CHECKING:
    from cloister.together.sealed.holder import KeyHolder
    from cloister.together.sealed.wire import KeyHolderLine


class SealedTable(PrivateTable):
    """A private table of masked cells, which the hub can't read and the key holder never sees.

    Parameters
    ----------
    batches: `.masked` files, or folders of them; all of one format.
    key_holder: who has their keys, here or elsewhere.
    size: a public hint of the number of rows.
    purpose, who: for what and for whom is asked, where the session does not say it; the key holder keeps it with its charge.

    >>> import cloister as cl
    >>> from tempfile import TemporaryDirectory
    >>> from cloister.together import KeyHolder, Marginal, MaskedFormat, Sealer
    >>> columns = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])}
    >>> format = MaskedFormat(columns=columns, marginals=[Marginal(by=["sex"], sums=["age"])], population="patients")
    >>> holder = KeyHolder(budgets={"patients": cl.PureDP(100)})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Sealer(format, holder.public).seal({"age": [39, 51], "sex": ["F", "M"]}, Path(folder) / "first.masked")
    ...     with cl.Session({"people": SealedTable(folder, holder)}, budget=cl.PureDP(100)) as session:
    ...         session.sql("SELECT COUNT(*) AS n FROM people", spend=50).to_pydict()
    {'n': [2]}
    >>> holder.spent("patients")
    PureDP(epsilon='50')
    """

    __slots__ = ()

    def __init__(
        self,
        batches: str | Path | Iterable[str | Path],
        key_holder: KeyHolder | KeyHolderLine,
        *,
        size: int | None = None,
        purpose: str = "",
        who: str = "",
    ) -> None:
        source = SealedSource(batches, key_holder, purpose=purpose, who=who)
        declared = source.format
        super().__init__(
            source, declared.columns, declared.unit, declared.max_rows, declared.population, size=size, row_is_person=True
        )


class SealedSource(Source):
    """Batches of masked cells, and who has their keys."""

    engine: ClassVar[str] = "sealed"

    def __init__(
        self, batches: str | Path | Iterable[str | Path], key_holder: KeyHolder | KeyHolderLine, *, purpose: str, who: str
    ) -> None:
        given = [Path(batches)] if isinstance(batches, str | Path) else [Path(each) for each in batches]
        paths = [found for each in given for found in (sorted(each.glob("*.masked")) if each.is_dir() else [each])]
        self.batches = [Batch(path) for path in paths]
        check_words(purpose=purpose, who=who)
        self.key_holder, self.purpose, self.who = key_holder, purpose, who
        if not self.batches or len({batch.head.format.text for batch in self.batches}) != 1:
            why = "their formats are different" if self.batches else "none was given"
            raise InvalidDeclaration("The batches are invalid", why=why, instead="batches of one format, in *.masked files")
        if len({batch.head.id for batch in self.batches}) < len(self.batches):
            raise InvalidDeclaration("The batches are invalid", why="one is there twice", instead="each batch once")
        self.format: MaskedFormat = self.batches[0].head.format
        heads = in_order([batch.head for batch in self.batches])
        self.batches.sort(key=lambda batch: heads.index(batch.head))
        gone = withdrawn_by(heads)
        self._left = {each.id: without(each.rows, gone.get(each.id, ())) for each in heads}
        table = self.format.table
        self.schema = dict(table.source.schema)

    @cached_property
    def rows(self) -> int:
        """How many count, padding included."""
        return sum(after - first for ranges in self._left.values() for first, after in ranges)

    @property
    def _counted(self) -> dict[str, Ranges]:
        """The rows that count. Of a format whose every row was withdrawn all batches stand there, without a row."""
        return {batch: ranges for batch, ranges in self._left.items() if ranges} or self._left

    def describe(self) -> str:
        """What it is."""
        return f"masked cells in {len(self.batches)} batches"

    def plan(self, plan: Plan) -> bytes:
        """What the key holder is asked."""
        return SealedPlan(plan=plan, rows=tuple(self._counted.items())).text

    def sums(self, place: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The sums of a marginal's masked cells."""
        parts = [batch.sums(place, self._left[batch.head.id]) for batch in self.batches]
        return np.asarray(sum(parts)).view(np.int64)

    def make_engine(self) -> SealedEngine:
        """The engine of these batches."""
        return SealedEngine(self)


class SealedEngine:
    """Shows the key holder every batch."""

    name = "sealed"

    def __init__(self, source: SealedSource) -> None:
        self.source = source
        self.abilities = Abilities(
            additive_noise_only=True,
            declared_keys_only=True,
            rows=False,
            relations=False,
            parts_of_a_person=source.format.overlap,
            shares=(2, 1),
        )

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The batches, ready to be asked."""
        for batch in self.source.batches:
            self.source.key_holder.accept(batch.head.data)
        return SealedPrepared(table, self.source, workspace, token_of(secret))


class _Masked(Elsewhere):
    """Masked cells that can be asked, of a table or of a relation over it."""

    _reader: SumReader
    nowhere: ClassVar[str] = "the rows are masked, and only sums with noise are opened"

    def compiled(self, request: NoisedRequest) -> Compiled:
        """Nothing: what the format, 64 bits or the key holder doesn't allow is refused here."""
        try:
            text = self.source.plan(self._plan(request))
        except TypeError:
            raise UnsupportedQuery(
                "A request that is not linear is not supported", why="masked cells are added up", instead="declared keys"
            ) from None
        self._reader.needed(request)
        check_room(request, self.source.rows)
        for each in request.integers:
            _ = shares_of_two(each.law).share  # a noise that is too narrow is refused here
        self.source.key_holder.agreed(text, self._besides(request))
        return ()

    def noised(self, request: NoisedRequest, compiled: Compiled, random: Random) -> Noised:
        """The sum of the values with the noise of both, and its law."""
        answer = self.source.key_holder.answer(self.source.plan(self._plan(request)))
        sizes = sizes_of(request)
        if len(answer) != 8 * sum(sizes):
            raise EngineError(
                "The key holder's answer is invalid", why="it has another length", instead="the same question later"
            )
        total = self._reader.integers(request, self.source.sums)
        total -= np.frombuffer(answer, dtype="<u8").astype(np.uint64)
        total += noise_of(request, random)
        values, laws, start = {}, {}, 0
        for each, shape, size in zip(request.integers, shapes_of(request), sizes, strict=True):
            values[each.name] = total[start : start + size].view(np.int64).reshape(shape)
            laws[each.name] = shares_of_two(each.law).total(2)
            start += size
        return Noised(values, laws)

    def cancel(self, thread: int | None = None) -> None:
        """What the key holder has begun, it charged."""


class SealedPrepared(_Masked, Prepared):
    """A table of masked cells."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, table: PrivateTable, source: SealedSource, workspace: Workspace, token: str) -> None:
        Prepared.__init__(self, table, materialised=True, workspace=workspace)
        self.source, self._reader, self.base, self.token = source, SumReader(source.format), table, token

    def related(
        self, relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None
    ) -> Answering:
        """The relation, which the key holder makes by itself of the format that the keys are bound to."""
        return SealedRelated(self, relation)

    def _close(self) -> None:
        self._reader.close()


class SealedRelated(_Masked):
    """A relation over a table of masked cells."""

    dialect = "duckdb"

    def __init__(self, home: SealedPrepared, relation: Relation) -> None:
        self.declared, self.workspace = relation, home.workspace
        self.source, self._reader, self.token, self.base = home.source, home._reader, home.token, home.base
