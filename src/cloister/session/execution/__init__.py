"""From a plan to a stored answer: reserve, aggregate, add noise, settle; and what was bought before."""
