"""What an adversary does: audits that try to break a guarantee, attacks on models, and the broken mechanisms that must be caught.

    audit.py, channel.py   lower bounds on what a mechanism gives away; exact ones where it has few outputs
    protocols.py           either of the two, as a protocol of local reports allows
    canaries.py            the same of an estimator, by many fits with and without one row
    membership.py          was this row in the training set? scores.py: how often that was told right
    inversion.py           from a model back to an attribute, or to a class that one row makes
    held_rows.py           does a model hold a training row?
    synthetic.py           attacks on synthetic tables: membership by densities, singling out, closest records
    reconstruction.py, trackers.py   many sums, and differences of answers
    published.py           the rows that explain a census block's printed counts, means and medians
    linkage.py             who is it? by a few ratings or visits
    answers.py             a template or a model's parameters, by asking
    broken/                mechanisms and models that don't keep what they promise

What may not live here: anything that trains a model. Attacks take fitted models, or functions that fit one.
"""

from cloister.attacks.audit import audit
from cloister.attacks.canaries import CanaryAudit, audit_model, corner
from cloister.attacks.channel import ChannelAudit, audit_channel
from cloister.attacks.held_rows import holds_rows
from cloister.attacks.inversion import AttributeInference, guess_attribute, infer_attribute, likeness, reconstruct_class
from cloister.attacks.membership import Shadows, membership, train_shadows
from cloister.attacks.protocols import audit_protocol
from cloister.attacks.result import AuditResult
from cloister.attacks.scores import MembershipResult, Rate
from cloister.attacks.synthetic import ClosestRecords, SinglingOut, closest_records, density_ratio, kernel_density, singling_out

__all__ = [
    "AttributeInference",
    "AuditResult",
    "CanaryAudit",
    "ChannelAudit",
    "ClosestRecords",
    "MembershipResult",
    "Rate",
    "Shadows",
    "SinglingOut",
    "audit",
    "audit_channel",
    "audit_model",
    "audit_protocol",
    "closest_records",
    "corner",
    "density_ratio",
    "guess_attribute",
    "holds_rows",
    "infer_attribute",
    "kernel_density",
    "likeness",
    "membership",
    "reconstruct_class",
    "singling_out",
    "train_shadows",
]
