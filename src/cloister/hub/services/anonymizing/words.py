"""What the pages say of searches, losses, attackers and stages: the words, for the catalogue of translations."""

from cloister.hub.web.languages import N_, NC_

SEARCHED = {
    "optimal": N_("One level for each column, the best of all"),
    "mondrian": N_("Groups cut to fit (Mondrian)"),
    "local": N_("The best level, refined group by group"),
    "topdown": N_("From the top down"),
    "greedy": N_("Step by step, for many columns"),
}
MEASURED = {
    "loss": N_("How much of each column is lost"),
    "discernibility": N_("How large the groups are"),
    "entropy": N_("How much information is lost"),
}
COUNTED = {
    "distinct": N_("different values"),
    "entropy": N_("values that are about as common (entropy)"),
    "recursive": N_("the commonest does not outweigh the rest (recursive)"),
}
"""How l counts."""
SPREAD = {
    "": N_("by the kind of the column"),
    "equal": N_("any two values are as far apart (equal)"),
    "ordered": N_("in the order of the values (ordered)"),
    "hierarchical": N_("in the hierarchy of the sensitive column (hierarchical)"),
    "kl": N_("in information, and t may exceed 1 (Kullback–Leibler)"),
}
"""How t measures."""
LIKENED = {"basic": N_("no value gains more than β"), "enhanced": N_("nor becomes certain where it is common (enhanced)")}
"""How β is meant."""
ABSENT = {"value": N_("a value of its own"), "suppress": N_("leave its row out"), "refuse": N_("refuse the table")}
ATTACKERS = {
    "linkage": N_("who is it? (linkage)"),
    "homogeneity": N_("all who look alike are alike (homogeneity)"),
    "background knowledge": N_("one possibility is known to be wrong (background knowledge)"),
    "skewness": N_("much more likely than for others (skewness)"),
    "similarity": N_("different words for much the same (similarity)"),
    "intersection of two releases": N_("two releases together (intersection)"),
    "learner": N_("a model that predicts (learner)"),
    "minimality": N_("what the algorithm rules out (minimality)"),
}
"""What each attacker asks."""
LOSSES = {
    "loss": N_("how much of each column is lost"),
    "certainty penalty": N_("how wide the published values are (certainty penalty)"),
    "precision": N_("how far up the levels (precision)"),
    "entropy": N_("information that is lost, in bits (entropy)"),
    "average class size": N_("average size of a group"),
    "discernibility": N_("rows that look alike, squared (discernibility)"),
    "ambiguity": N_("combinations that a row could be (ambiguity)"),
    "divergence": N_("how far the shares of values moved (divergence)"),
}
"""What each measure of loss says."""
STAGES = (
    N_("reading the rows"),
    N_("comparing risk and information loss"),
    N_("comparing levels"),
    N_("anonymising"),
    N_("simulating attacks"),
    N_("keeping the table"),
)
"""What a job says of itself while it runs: known from the order, and nothing of the rows."""


KEYS = {
    **LOSSES,
    **ATTACKERS,
    **SEARCHED,
    "equal": N_("equal distances"),
    "ordered": N_("ordered"),
    "hierarchical": N_("hierarchical"),
}
"""Words that papers use as names, and what pages say for them."""
NESTED = (N_("{first} and {last}"), N_("{column} of {rows} rows is disclosed all the same"), N_("{first}; {rest}"))
"""Texts that stand only within others."""
STEPS = (
    *(NC_("steps", "day"), NC_("steps", "month"), NC_("steps", "quarter"), NC_("steps", "half"), NC_("steps", "year")),
    *(NC_("steps", "decade"), NC_("steps", "century")),
)
"""By what dates become coarser, in "dates by {steps}"."""
