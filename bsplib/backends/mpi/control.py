"""What driver, watchers and ranks of a job tell each other: kinds of messages, and their forms.

The messages travel beside MPI: over TCP between the driver and each watcher, and over a pair of
sockets between a watcher and its rank (:mod:`bsplib.backends.mpi.messages`). So they reach a
watcher while its rank computes, and MPI is used by one thread only.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from struct import Struct

PART = 0
"""The beginning of a long message, or more of it; the kind comes with the rest."""
# To a rank, through its watcher:
RUNNER = 1
"""What the rank needs for the jobs that follow; see :class:`JobRunner`."""
JOB = 2
"""What :data:`RUN` has, and the job."""
END = 3
"""There are no more jobs: the rank leaves MPI and exits."""
RENEW = 4
"""A run has failed: all ranks renew their link, and answer by RENEWED. Where the byte is 1, they
take a new communicator, too."""
RESULT = 5
"""What a call of ``bsplib.run`` returns or raises in all ranks that have called it."""
# To a watcher:
PROOF = 8
"""The hub knows the key; sent once, first."""
PING = 9
"""Answered by PONG."""
STOP_NOW = 10
"""The rank stops where it waits for others, now or later."""
KILL = 11
"""The rank is ended by force, and so is its watcher."""
WHERE = 12
"""Answered by PLACE."""
# From a rank, through its watcher:
JOINS = 16
"""For the watcher itself: the rank joins MPI now, with this library."""
HUB = 17
"""For the watcher itself: how it reaches the hub."""
READY = 18
"""The rank has joined MPI: its number, the size of its world, and how it can be asked."""
OUTPUT = 19
"""What the rank writes to its standard output (first byte 1) or error (2)."""
REPORT = 20
"""How the process ended in a run; what :data:`REPORTED` has stands before it."""
MEMORY = 21
"""For the watcher itself: where it reads the supersteps of runs in which ranks share memory."""
RENEWED = 22
"""Nothing of the failed run is left in the rank."""
# From a watcher, which may stand between the parts of a message that it passes on:
CHALLENGE = 24
"""Sent by the hub to whoever connects: bytes that only the key can answer."""
HELLO = 25
"""Answers a challenge: a challenge for the hub, the proof, and who this is."""
PONG = 26
"""Whether the rank is stopped by a signal, and its superstep."""
DIED = 27
"""The rank has ended: its exit status and its superstep."""
PLACE = 28
"""Where the rank is: its superstep and its stack."""

RUN = Struct("!QIq")
"""Before a job: number of the run, number of processes, and number of the run that has made the
memory which they may share, perhaps this one; 0 where they may not, and negative where they meet
through MPI even if all are on one host."""
REPORTED = Struct("!QB")
"""Before the report of a process: number of the run, and the condition in which it has left the
link of the rank: SOUND, INTERRUPTED or BROKEN."""
SOUND, INTERRUPTED, BROKEN = range(3)
"""After a failed run the rank can serve the next one, or it can do so with another communicator,
or it cannot, since nothing is known of what MPI does for it."""
STATE = Struct("!?q")
"""Of PONG: stopped by a signal, superstep."""
NOTE = Struct("!QiQ")
"""Of MEMORY: a :class:`Note`."""
ENDED = Struct("!iq")
"""Of DIED: exit status, superstep."""


# -- proofs that both ends of a connection belong to one job --------------------------------------


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
