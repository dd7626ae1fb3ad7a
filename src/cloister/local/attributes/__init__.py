"""Several attributes of each person: one asked, or all with a share; how they go together."""
