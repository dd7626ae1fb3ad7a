"""What the pages say of searches, losses, attackers and stages: the words, for the catalogue of translations.

What reports, certificates and risk pages of anonymised tables say: the texts, for the catalogue of translations.

They are written below the hub, in `cloister.anonymize`; a place in braces is where a value was put in.
"""

from __future__ import annotations

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
_CERTIFICATE = (
    N_("The table"),
    N_("Proof"),
    N_("Risk"),
    N_("Information loss"),
    N_("Attack results"),
    N_("Limits"),
    N_("Signature"),
    N_("Model"),
    N_("Column"),
    NC_("certificate", "Asked"),
    N_("Reached"),
    N_("holds"),
    N_("fails"),
    N_("Raw table"),
    N_("Published"),
    N_("Measure (smaller is better)"),
    N_("Attack"),
    N_("Without the table"),
    N_("The share of the people of whom it succeeds."),
    N_("Name"),
    N_("Function"),
    N_("Date"),
    N_("SHA-256 of the table as CSV"),
    N_("search"),
    N_("rows"),
    N_("published as they are"),
    N_("dropped"),
    N_("hierarchy of {name}"),
    N_("{published} of {rows} published"),
    N_("Every model that was asked for holds, counted again on the published table. {answer}"),
    N_("A model fails. {answer}"),
    N_("largest probability of finding a person who is in the table"),
    N_("share of names that are right, if all are named"),
    N_("rows that are the only ones of their kind"),
    N_("This table is NOT differentially private. The statements below hold only for the columns and the attackers named here."),
    N_(
        "Someone who knows more about a person than the quasi-identifiers named may find that person, and may learn "
        "more about them."
    ),
    N_(
        "Another release about the same people, by anyone, can undo the protection of this one: two tables that are "
        "k-anonymous need not be so together."
    ),
    N_(
        "Versions of one table about people who come and go are such releases: what keeps their classes apart is m-invariance "
        "(Xiao and Tao 2007), and nothing here has it."
    ),
    N_("Someone who knows how the table was made, and most of its rows, may learn about the rest."),
    N_(
        "Models are counted for attackers who do not use the algorithm: someone who knows that it leaves as little "
        "as it can may rule values out (minimality)."
    ),
    N_("What the table teaches about people in general, it teaches also about people who are not in it."),
    N_("optimal: {proof}"),
    N_("not proved optimal: {proof}"),
    N_("{search}; optimal: {proof}"),
    N_("{search}; not proved optimal: {proof}"),
    N_("{judged} of {nodes} nodes were judged, all others ruled out"),
    N_(
        "{judged} of {nodes} nodes were judged in the time; its score is {score} and none has less than {bound}, so that "
        "it is at most {gap} above the best"
    ),
    N_("{judged} of {nodes} nodes were judged in the time; its score is {score} and none has less than {bound}"),
    N_("{judged} nodes were judged; its score is {score} and none has less than {bound}"),
    N_("{steps} labels were split, each time the one that gained most for each row that it cost"),
    N_("levels that were chosen"),
    N_("order of the rows"),
    N_("secret, drawn for this table"),
    N_("attacker who knows the algorithm"),
    N_("the models assume that attackers do not use it; one who does was tried (minimality)"),
    N_(
        "the models assume that attackers do not use it; one who does was not tried, since the search takes too long to run often"
    ),
    N_("learns nothing by it that is known of: the search was not said to look at sensitive values"),
    N_("what classes are compared with"),
    N_(
        "by the models, the whole table with its suppressed rows; by the risks, the rows that are published: so t, β and δ may "
        "differ between them"
    ),
    N_("{published} published; with the public list there are {rows}"),
)
_ATTACKS = (
    N_(
        "Someone who finds the class of a person reads {column} with certainty for {after} of the people, since all "
        "in the class have the same; in the raw table for {before}."
    ),
    N_(
        "Someone who also knows {known} value that a person does not have is certain of {column} for {after} of the "
        "people; in the raw table for {before}."
    ),
    N_(
        "Someone who also knows {known} values that a person does not have is certain of {column} for {after} of "
        "the people; in the raw table for {before}."
    ),
    N_(
        "Someone who has another release about the same people, and keeps the values of {column} that both give a "
        "person, is certain for {success} of the people; with the better of the two alone for {alone}."
    ),
    N_(
        "Someone who knows the algorithm and everyone's quasi-identifiers, and rules out the tables that it would "
        "have left finer ({out} of those that fit), gives a value of {column} a probability of {posterior} for a "
        "person where the class gives {said}, and guesses right for {success} of the people; by the classes alone for {baseline}."
    ),
    N_(
        "A learner trained on the published table predicts {column} right for {seen} of the people whose rows it saw; of "
        "others, whose rows it did not see, for {others} (the commonest value alone: {majority}). Trained on the raw "
        "table, for {raw}."
    ),
    N_(
        "Someone who has a public list {whose} ({size} people) and gives each row a name that fits is right for "
        "{after} of {rows} rows ({share}); with the raw table for {before} ({raw})."
    ),
    N_(
        "Someone who has a public list {whose} ({size} people) and gives each row a name that fits is right for "
        "{after} of {rows} rows ({share}), and {certain} is certain; with the raw table for {before} ({raw})."
    ),
    N_(
        "Someone who has a public list {whose} ({size} people) and gives each row a name that fits is right for "
        "{after} of {rows} rows ({share}), and {certain} are certain; with the raw table for {before} ({raw})."
    ),
    N_("of exactly the people in the table"),
    N_("of the population"),
    N_(
        "For {after} of the people the class makes their own {column} at least {times} times as likely as in the whole "
        "table; at the most a suspicion grows from {low} to {high}; in the raw table for {before}."
    ),
    N_(
        "For {after} of the people the class makes their own {column} at least {times} times as likely as in the whole "
        "table; in the raw table for {before}."
    ),
    N_("For {after} of the people the values of {column} in their class are of one kind; in the raw table for {before}."),
    N_(
        "For {after} of the people the values of {column} in their class lie within {within} of the whole range; in the "
        "raw table for {before}."
    ),
)
_MODELS = (
    N_("{k}-anonymity"),
    N_("{l}-diversity"),
    N_("entropy {l}-diversity"),
    N_("recursive ({c}, {l})-diversity"),
    N_("{t}-closeness"),
    N_("{t}-closeness ({distance})"),
    N_("{beta}-likeness"),
    N_("enhanced {beta}-likeness"),
    N_("{delta}-disclosure privacy"),
    N_("no c: a class has fewer than {values} values"),
    N_("δ = ∞ (a class lacks a value; among those that are there, {most})"),
    N_("β = {most}, and a value gains more than −ln p"),
)
_REPORT = (
    N_("An anonymised table"),
    N_(
        "NOT differentially private: the models cover this table alone. Someone who knows more about a person, or "
        "has another release about the same people, may learn more."
    ),
    NC_("anonymity", "Models"),
    N_("model"),
    N_("column"),
    N_("asked"),
    N_("the table has"),
    N_("✓ holds"),
    N_("✗ does not hold"),
    N_("{published} of {rows} published, {suppressed} suppressed"),
    N_("classes of rows that look alike"),
    N_("Chance of being recognised"),
    N_("before"),
    N_("after"),
    N_("highest probability of a person"),
    N_("average probability"),
    N_("share of rows that are alone"),
    N_("Information loss (share of the largest possible)"),
    N_("Columns"),
    N_("level"),
    N_("hierarchy"),
    N_("intervals of {widths} from {low} to {high}"),
    N_("intervals of {widths}"),
    N_("intervals between {counts} borders"),
    N_("dates by {steps}"),
    N_("learnt groups that keep what is known of {about}"),
    N_("the other columns"),
    N_("shown or not shown"),
    N_("masked from the {side}, one character after the other"),
    N_("masked from the {side}: {shown} characters shown"),
    N_("left"),
    N_("right"),
    N_("{lines} values on {height} levels"),
)
_RISK = (
    N_(
        "{count} values of {column} differ in blanks, capitals or the form of their letters alone: models count them as "
        "different, and may be met by spelling alone. Write them in one way first: {line}"
    ),
    N_(
        "If others also know {columns}, {alone} of {rows} rows are the only ones of their kind, not {before} (k = {k}, not "
        "{was})."
    ),
    N_("If others also know {columns}, {below} of {rows} rows are in smaller classes (k = {k}, not {was})."),
    N_("Risk of {of}"),
    N_("Is this table anonymous?"),
    N_("Everyone looks like at least {others} other in {where}."),
    N_("Everyone looks like at least {others} others in {where}."),
    N_("Everyone looks like at least {others} other in {where}. But {told}, since all who look like them have the same value."),
    N_("Everyone looks like at least {others} others in {where}. But {told}, since all who look like them have the same value."),
    N_("No. {unique} of {rows} rows ({share}) are the only ones of their kind in {where}."),
    N_("No. {unique} of {rows} rows ({share}) is the only one of its kind in {where}."),
    N_("All rows of the table are suppressed."),
    N_("the quasi-identifiers"),
    N_("{rows}, and {suppressed} suppressed"),
    N_("quasi-identifiers"),
    N_("sensitive columns"),
    N_("no column was named"),
    N_("columns not looked at"),
    N_("Re-identification risk"),
    N_("Attacker"),
    NC_("attacker", "Who"),
    N_("Success"),
    N_("The largest chance to find a person, by who searches."),
    N_("Prosecutor"),
    N_("Journalist"),
    N_("Marketer"),
    N_("knows that the target is in the table"),
    N_("does not know that the target is in the table; without the population's list, no weaker than the prosecutor"),
    N_("names everyone in the table by guessing, knowing who is in it; the share of names that are right"),
    N_(
        "A class is the rows that look alike in what others may know. The smallest has {smallest} row (k = {k}); there "
        "are {classes}. {fifth} rows have a chance of more than one in five to be found, {twentieth} of more than one in "
        "twenty."
    ),
    N_(
        "A class is the rows that look alike in what others may know. The smallest has {smallest} rows (k = {k}); there "
        "are {classes}. {fifth} rows have a chance of more than one in five to be found, {twentieth} of more than one in "
        "twenty."
    ),
    N_("Rows by how many look alike"),
    N_("alone"),
    N_("among {low} or more"),
    N_("among {low}"),
    N_("{rows} rows, {share}"),
    N_("Disclosure of {name}"),
    N_("The class that differs most from the whole table:"),
    N_("Shares of {name}"),
    N_("in that class"),
    N_("in the table"),
    N_("In every class at least {l} different values stand (ℓ = {again})."),
    N_("{told} rows are in classes with a single value (ℓ = 1): anyone who finds the class knows it."),
    N_("The commonest value of a class is that of up to {share} of its rows (α = {alpha})."),
    N_("The class that differs most from the table is {t} away (t, {distance}; 0: as the whole table)."),
    N_("A value is up to {times} times as common in a class as in the table (β = {beta})."),
    N_("Limits of this page"),
    N_(
        "It covers the quasi-identifiers that were named, in the words of the table. Someone who knows a column "
        "that was not named may find more."
    ),
    N_(
        "It covers this table alone. Another release about the same people can be combined with it, and both "
        "together may point to one person, whatever k is in each."
    ),
    N_("It does not cover someone who knows more: most of the rows, a rare circumstance, or how the table was made."),
    N_(
        "A table with these properties is not differentially private. Where that is needed, release answers, a model or a"
        " synthetic table instead, under a budget."
    ),
    N_("I have read this page and approve the release of the table with the digest above."),
)
SENTENCES = (*_CERTIFICATE, *_ATTACKS, *_MODELS, *_REPORT, *_RISK)
NESTED = (N_("{first} and {last}"), N_("{column} of {rows} rows is disclosed all the same"), N_("{first}; {rest}"))
"""Texts that stand only within others."""
STEPS = (
    *(NC_("steps", "day"), NC_("steps", "month"), NC_("steps", "quarter"), NC_("steps", "half"), NC_("steps", "year")),
    *(NC_("steps", "decade"), NC_("steps", "century")),
)
"""By what dates become coarser, in "dates by {steps}"."""
