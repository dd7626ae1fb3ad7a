"""What people write beside an order or a release: its name, one line, and its purpose. Both are printable, and may be empty."""

from cloister.errors import InvalidParameter
from cloister.printable import is_text


def check_title(title: str) -> None:
    """Refuse an invalid name.

    >>> check_title("Age by sex")
    """
    if title and not is_text(title):
        raise InvalidParameter("The name is invalid", why="it must be one line of at most 200 characters", instead="Age by sex")


def check_purpose(purpose: str) -> None:
    """Refuse an invalid purpose.

    >>> check_purpose("care paths")
    """
    if purpose and not is_text(purpose, 1000):
        raise InvalidParameter(
            "The purpose is invalid", why="it must be printable text of at most 1000 characters", instead='purpose="…"'
        )
