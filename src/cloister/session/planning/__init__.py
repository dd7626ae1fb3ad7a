"""From a question to its plan: what is measured, with which noise, at which cost and with which error, before a row is read."""
