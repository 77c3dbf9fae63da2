"""How the hub and the watchers show each other that they belong to one job."""

from __future__ import annotations

import hashlib
import hmac
import os

KEY_BYTES = 32


def challenge() -> bytes:
    """Return bytes that have not been used before."""
    return os.urandom(KEY_BYTES)


def proof(key: bytes, who: bytes, *challenges: bytes) -> bytes:
    """Return what shows that somebody knows the key.

    Args:
        key: the secret of the job.
        who: ``b"hub"`` or ``b"watcher"``, so that neither can repeat what the other one said.
        challenges: that of the other end first.
    """
    return hmac.digest(key, b"".join([who, *challenges]), hashlib.sha256)


def is_proof(given: bytes, key: bytes, who: bytes, *challenges: bytes) -> bool:
    """Tell whether a proof is right."""
    return hmac.compare_digest(given, proof(key, who, *challenges))
