"""Which release of cloister this hub is, read from the installed package: the hub uses no name of the front room."""

from cloister.installed import edition

EDITION = edition()
