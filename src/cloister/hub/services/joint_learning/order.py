"""What somebody wants of joint learning: of which data set of several owners, which directions, and what it may cost."""

from dataclasses import dataclass

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.labels import check_purpose
from cloister.hub.web.languages import N_
from cloister.hub.work.ordering import asked, whole
from cloister.privacy import exact_positive
from cloister.stored import Stored

ACTION = "joint.run"
METHODS = {
    "PCA": N_("Principal components: what varies most"),
    "DCA": N_("Discriminant components (DCA): what tells the classes of a label apart"),
    "LDA": N_("Fisher's discriminants (LDA): the same, at most as many as classes less one"),
}
_MOST = 50


@dataclass(frozen=True, kw_only=True)
class JointLearning:
    """Directions of the rows of several owners, with noise."""

    __pydantic_config__ = example(
        table="both_hospitals", columns=["age", "pay"], method="DCA", label="ill", components="1", spend="1", purpose="research"
    ) | {"extra": "forbid"}

    table: str
    columns: tuple[str, ...] = asked(N_("Columns"))
    method: str = asked(N_("Method"))
    label: str = asked(N_("Label"), default="")
    components: str = asked(N_("Components"))
    spend: str
    purpose: str = ""
    project: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        count = check_columns(self.columns)
        check_method(self.method, self.label)
        check_components(self.components, count)
        check_purpose(self.purpose)
        _ = exact_positive(self.spend, "spend")

    algorithm = ""
    """No algorithm learns jointly."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The label, where there is one."""
        return (self.label,) if self.label else ()


def check_method(method: str, label: str) -> None:
    """Refuse another method, and a label that does not go with it."""
    if method not in METHODS or (method == "PCA") == bool(label):
        raise InvalidParameter(
            "The method is invalid", why="PCA has no label, and DCA and LDA have one", instead="PCA; or DCA, and a label"
        )


def check_components(text: str, columns: int) -> None:
    """Refuse none, and as many as there are columns."""
    if not 1 <= whole(text) < columns:
        why = f"fewer than the {columns} columns are handed out: all of them tell the most"
        raise InvalidParameter("The components are invalid", why=why, instead="1")


def check_columns(columns: tuple[str, ...]) -> int:
    """Refuse too few, too many, and one twice; how many they are."""
    if not 2 <= len(columns) <= _MOST or len(set(columns)) != len(columns):
        raise InvalidParameter(
            "The columns are invalid", why=f"they are 2 to {_MOST} different columns", instead="two columns of numbers, or more"
        )
    return len(columns)


ORDER = Stored(
    JointLearning, "JointLearning", "table", "columns", "method", "label", "components", "spend", "purpose", "project", "title"
)
"""As a job holds it."""
