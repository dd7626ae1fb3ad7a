"""What lines say, for people: the title of an action that no policy knows, since nobody is asked whether it may be done."""

from __future__ import annotations

from cloister.hub.policy import actions

__all__ = ["titles"]

N_ = str
"""Marks an English text that is translated where it is shown."""

_OWN = {
    "trail.export": N_("Export the trail"),
    "trail.gap": N_("Lines of the trail are lost"),
    "trail.accept": N_("Answer for lost lines"),
    "alert.raise": N_("Raise an alert"),
    "alert.see": N_("Look at an alert"),
    "job.submit": N_("Submit a job"),
    "job.end": N_("A job ended"),
}


def titles() -> dict[str, str]:
    """Action → title, in English.

    >>> titles()["job.end"], titles()["question.ask"]
    ('A job ended', 'Ask a question')
    """
    return {name: action.title for name, action in actions().items()} | _OWN
