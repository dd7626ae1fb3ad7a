"""Texts of which fewer and fewer characters are shown: postcodes, telephone numbers, codes of diseases."""

from dataclasses import dataclass

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished, text_of
from cloister.errors import InvalidParameter, check_one_of


@dataclass(frozen=True)
class Masking(Hierarchy):
    """Characters are masked from one side; shorter texts are filled up first, so that their length tells nothing on the upper
    levels. In a table that leaves they are as long as its own longest text.

    >>> Masking().label("81675", 3, 5)
    '816**'
    """

    shown: tuple[int, ...] = ()
    side: str = "right"
    character: str = "*"

    def __post_init__(self) -> None:
        check_one_of(self.side, "side", ("left", "right"), why="it is neither left nor right", instead='side="right"')
        if len(self.character) != 1:
            raise InvalidParameter(
                f"character={self.character!r} is invalid", why="it is not one character", instead='character="*"'
            )
        if any(isinstance(each, bool) or not isinstance(each, int) or each < 1 for each in self.shown) or list(
            self.shown
        ) != sorted(set(self.shown), reverse=True):
            raise InvalidParameter(
                f"The characters shown {self.shown} are invalid",
                why="they do not fall, or one is under 1",
                instead="Hierarchy.masking(4, 3, 1)",
            )

    def describe(self) -> str:
        """From which side, and how many are shown."""
        shown = f": {', '.join(map(str, self.shown))} characters shown" if self.shown else ", one character after the other"
        return f"masked from the {self.side}{shown}"

    def label(self, text: str, shown: int, width: int) -> str:
        """A text of which `shown` characters are shown."""
        if self.side == "right":
            return text[:shown] + self.character * (width - min(shown, len(text)))
        hidden = max(width - shown, 0)
        return self.character * hidden + text.rjust(width, self.character)[hidden:]

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """The masks of a column's values."""
        texts = [text_of(value) for value in column.values if value is not None]
        width = max(map(len, texts), default=0)
        shown = self.shown or tuple(range(width - 1, 0, -1))
        return finished(column, [[self.label(text, each, width) for text in texts] for each in shown])
