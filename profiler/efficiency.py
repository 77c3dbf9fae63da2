"""The efficiencies of the POP Centre of Excellence, computed from the account of a run.

With useful computation u_i of process i, p processes and elapsed time T:

- parallel efficiency = sum u_i / (p T): the part of the account that is useful computation;
- load balance = mean u_i / max u_i;
- communication efficiency = max u_i / T, so that parallel efficiency = load balance x
  communication efficiency;
- serialisation = max u_i / T_0, where T_0 is the time that the supersteps take with their
  useful computation only: the sum over supersteps of its maximum. It falls where another
  process is slow each time;
- transfer = T_0 / T, so that communication efficiency = serialisation x transfer. Here also
  time blocked or without a core, recording, and start and end count.

Source: POP Centre of Excellence, "Standard metrics for performance audit" (Rosas, Gimenez
and Labarta 2014, "Scalability prediction for fundamental performance factors").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler.account import USEFUL

if TYPE_CHECKING:
    from bsplib.profiler.run_account import RunAccount


class Efficiencies(NamedTuple):
    """Fractions from 0 to 1."""

    parallel: float
    load_balance: float
    communication: float
    serialisation: float
    transfer: float


def efficiencies(account: RunAccount, alone_ns: int) -> Efficiencies:
    """Return the efficiencies of a run; all are 1 where nothing was computed.

    Args:
        account: the account of the run.
        alone_ns: how long the supersteps take with their useful computation only.
    """
    useful = account.by_process()[USEFUL]
    most, elapsed = int(useful.max(initial=0)), account.elapsed_ns
    if most == 0 or elapsed == 0:
        return Efficiencies(1.0, 1.0, 1.0, 1.0, 1.0)
    ideal = max(alone_ns, most)
    return Efficiencies(
        float(useful.mean()) / elapsed,
        float(useful.mean()) / most,
        most / elapsed,
        most / ideal,
        ideal / elapsed,
    )
