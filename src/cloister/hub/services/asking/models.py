"""Moved: `cloister.hub.records.asking`."""

from cloister.hub.records.asking import *  # noqa: F403
