"""What an adversary does: audits that try to break a guarantee, and the broken mechanisms that they must catch."""

from cloister.attacks.audit import audit
from cloister.attacks.channel import ChannelAudit, audit_channel
from cloister.attacks.result import AuditResult

__all__ = ["AuditResult", "ChannelAudit", "audit", "audit_channel"]
