"""What the accounts of one process share: the one who hashes, and what is known of the identity provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cloister.hub.platform.accounts import second_factor
from cloister.hub.platform.accounts.hashing import Hasher

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.platform.accounts.oidc import Provider

_NAME = "accounts"


@dataclass(kw_only=True)
class Parts:
    """Kept in `hub.parts`."""

    hasher: Hasher = field(default_factory=Hasher)
    provider: Provider | None = None


def opened(hub: Hub) -> None:
    """Called when a process opens the hub: make the parts."""
    from cloister.hub.platform.accounts.oidc import Provider

    settings = hub.settings
    provider = None
    if settings.oidc_issuer:
        provider = Provider(
            issuer=settings.oidc_issuer, client=settings.oidc_client, secret=settings.oidc_secret, clock=hub.clock
        )
    hub.parts[_NAME] = Parts(provider=provider)
    hub.secret(second_factor.SECRET)  # made here, since codes are kept inside of transactions


def parts_of(hub: Hub) -> Parts:
    """The parts of a hub."""
    found: Parts = hub.parts[_NAME]
    return found
