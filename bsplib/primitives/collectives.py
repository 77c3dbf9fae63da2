"""The collectives: what all processes of a group do together, values in, values out.

They are written on send and sync alone, so that they cost what BSP says, and their
supersteps stand in a profile like any others. Every process of the group calls the
same one, with the same root. Of all of them:

* What they return is the caller's own: no part of it is memory of an argument.
* A value is taken at the call; puts that are pending take effect at the syncs.
* Messages that the program sent before can be read afterwards, however many
  supersteps it took; those not read before are gone, as after any sync.

In the costs n is the bytes of one value (of a part, where there are parts), p the
number of processes. Arrays, bytes and numpy's numbers travel as they are, anything
else as its pickle.
"""

from __future__ import annotations

from bsplib.primitives.combinations import Combinations
from bsplib.primitives.exchanges import Exchanges


class Collectives(Exchanges, Combinations):
    """The collectives of a group, above its send and its sync."""
