"""What the sealed store refuses with. No message holds a value, or a name from a document."""

from cloister.errors import CloisterError


class Tampered(CloisterError):
    """What the store returned is not what this client wrote last."""

    stored = "VaultTampered"


class Conflict(CloisterError):
    """Someone else wrote in between, or the client's state and the store do not belong together."""

    stored = "VaultConflict"


class BackupExpired(CloisterError):
    """A backup of keys whose last day is over."""

    stored = "VaultBackupExpired"


class DuplicateKey(CloisterError):
    """A document with this `_id` is there already."""

    stored = "VaultDuplicateKey"
