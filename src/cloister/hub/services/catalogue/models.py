"""Moved: `cloister.hub.records.catalogue`."""

from cloister.hub.records.catalogue import *  # noqa: F403
