"""Exact components of rows at sites, over the wire by which sites and a key holder call their hub.

    exact key       key holder   makes a Paillier key for one plan, signs both, and has its primes in memory alone
    exact           site         checks plan and key, asks its owner, and signs a key for masks: nothing is read
    exact moments   site         writes that what leaves is not private, then sends its masked, encrypted moments, once
    exact circuit   key holder   decrypts blinds, and begins to garble
    exact line      key holder   takes messages of the circuit's protocol, and gives those that wait: the hub evaluates
    exact stop      key holder   lets go of a plan's key and circuit
    exact columns   site         keeps the result, which the hub signed

The hub is the `DataUser` of `service_provider`, where it is said who learns what, and that all follow the protocol: **not
differentially private**. What a site does not take on trust: that the hub is the roster's, that the key was signed, for this
plan, by the key holder that its owner agreed to (a hub with a key of its own would read the moments), that the bounds are those
it declared, and that its owner said yes to this plan. A rule "always" is no such yes: it was given to numbers with noise. A yes
holds for one plan; the same message again gets the same bytes, whatever the rows are by then.

That all sites of the roster take part is no matter of trust either. Each two of them add and take off a stream of a secret of
their own (`SendingOwner`), from keys that all of them signed for this plan: a sum without one site is uniform, whoever adds and
decrypts. So a hub that leaves out a site, or puts noughts in its place, gets nothing; a hub and a key holder who share what they
have read the sums of all sites, and not those of one; a hub with all other sites has what follows from the sum less theirs. The
hub may shift or scale the sum by what it knows, which makes the result wrong. The key holder garbles the plan that it signed its
key for and no other: so the hub has that plan's result of the sum, and of nothing else.

    request.py   what is asked, and what a site refuses of it
    site.py      a site's part
    keys.py      the key holder's
    learning.py  the hub's
"""
