"""No search at all: the levels were chosen already, by hand or from a frontier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches.judging import recode
from cloister.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class AtLevels(Search):
    """Each column on the level that was chosen for it; rows of classes that miss a model are suppressed, as many as may be.

    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> chosen = AtLevels(levels={"age": 1})
    >>> anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search=chosen, suppression=0)
    >>> sorted(anonymizer.fit_transform({"age": [30, 31, 60, 61]})["age"]), anonymizer.report_.levels
    (['30–31', '30–31', '60–61', '60–61'], {'age': 1})
    """

    name: ClassVar[str] = "chosen levels"
    levels: Mapping[str, int]

    def find(self, problem: Problem) -> Recoded:
        """The table on these levels, or the refusal."""
        if set(self.levels) != set(problem.quasi):
            raise InvalidParameter(
                "The levels are invalid",
                why="they are not those of the quasi-identifiers: " + ", ".join(problem.quasi),
                instead="a level for each quasi-identifier, and for no other column",
            )
        for name, level in self.levels.items():
            height = problem.ladders[name].height
            if isinstance(level, bool) or not 0 <= level < height:
                raise InvalidParameter(
                    f"The level {level!r} of {name!r} is invalid",
                    why=f"its hierarchy has the levels 0 to {height - 1}",
                    instead=f"levels={{{name!r}: {height - 1}, …}}",
                )
        recoded = recode(problem, tuple(self.levels[name] for name in problem.quasi))
        if recoded.suppressed_rows > problem.limit:
            raise InvalidParameter(
                "The levels are invalid",
                why=f"{recoded.suppressed_rows:,} of {problem.table.total:,} rows would have to be suppressed there, and "
                f"{problem.limit:,} may be",
                instead="higher levels, weaker models, or a larger suppression=",
            )
        return recoded
