"""Several owners, one result: sums over rows that never leave their owners.

    roster.py    who takes part, by which keys, and how many of them may fail
    messages.py  signed messages, as bytes for any transport
    rounds.py    the secure sum: a site and the hub in one round; its proof
    shamir.py    secrets in shares
    journal.py   what a party keeps on disk, so that there is one answer to one message
    checking.py  what a request must be
    accounting.py  what a request can cost a person, worked out by a site itself
    reading.py   a request read from its text
    reading_relations.py  conditions, computed columns and relations read from theirs
    site.py      one owner's table, with the owner's ledger and policy
    plan.py      what a round is about, as the one text that the hub signs
    joint.py     a table at several sites, asked like any other
    pooled.py    tables of several owners who trust one hub, asked as one
    following.py  which parties have answered, for whoever waits
    coordinator.py  the hub's end of the wire: a mailbox for each site
    agent.py     a site as a process of its own, which dials out to its hub
    owner.py     what a site's owner decides and sees: rules, plans that wait, the site's log
    wording.py   a plan in words
    sealed/      masked cells at the hub, and a key holder that never sees a value
    noisy_moments.py  second moments with noise in shares: what is measured, what one person changes, the proof
    proxy.py     owners, a proxy who adds, a user who holds the key: each by the bytes that it sends
    distributed_pca.py  principal components of what the user reads
    service_provider.py  owners, a user who adds, a provider who keeps the key: exact components, by a circuit
    prio3/       people send shares of a number to servers, none of which reads one
    circuits/    two-party circuits: what two parties compute and neither could alone

The noise that is in such a sum is made in shares (`cloister.noise.shares`); keys and masks are those of `cloister.crypto`.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.crypto.paillier import EncryptedVector as EncryptedVector
    from cloister.crypto.paillier import Paillier as Paillier
    from cloister.crypto.paillier import PublicKey as PublicKey
    from cloister.crypto.paillier import Slots as Slots
    from cloister.crypto.paillier_pool import PaillierPool as PaillierPool
    from cloister.together.accounting import cost_of as cost_of
    from cloister.together.agent import SiteAgent as SiteAgent
    from cloister.together.coordinator import Coordinator as Coordinator
    from cloister.together.distributed_pca import DistributedPCA as DistributedPCA
    from cloister.together.joint import JointTable as JointTable
    from cloister.together.joint import SitesMissing as SitesMissing
    from cloister.together.journal import Journal as Journal
    from cloister.together.journal import MemoryJournal as MemoryJournal
    from cloister.together.messages import RoundRefused as RoundRefused
    from cloister.together.pooled import PooledTable as PooledTable
    from cloister.together.roster import Roster as Roster
    from cloister.together.roster import SignedRoster as SignedRoster
    from cloister.together.rounds import HubRound as HubRound
    from cloister.together.rounds import Round as Round
    from cloister.together.rounds import SiteRound as SiteRound
    from cloister.together.rounds import run_round as run_round
    from cloister.together.rounds import secure_sum as secure_sum
    from cloister.together.sealed.batches import Sealer as Sealer
    from cloister.together.sealed.format import Marginal as Marginal
    from cloister.together.sealed.format import MaskedFormat as MaskedFormat
    from cloister.together.sealed.holder import KeyHolder as KeyHolder
    from cloister.together.sealed.renewing import apply_difference as apply_difference
    from cloister.together.sealed.renewing import renewed as renewed
    from cloister.together.sealed.table import SealedTable as SealedTable
    from cloister.together.sealed.wire import KeyHolderAgent as KeyHolderAgent
    from cloister.together.sealed.wire import KeyHolderLine as KeyHolderLine
    from cloister.together.site import Asked as Asked
    from cloister.together.site import Site as Site

__all__, __getattr__, __dir__ = Lazily(__name__).public
