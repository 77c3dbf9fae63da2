"""The functions that take what the engine declines, as one object."""

from __future__ import annotations

from typing import NoReturn

from bsplib.core.engine import Engine
from bsplib.errors import BspError
from bsplib.primitives import collective_mail, combinations, mailbox, oblivious, remote
from bsplib.primitives.state import GroupState


class DeclinedCalls:
    """Passes on each call of the engine to the function with the checks for it.

    See :class:`bsplib.core.protocols.Checks` and :class:`bsplib.core.values.SlowValues`.
    """

    put = staticmethod(remote.put_slowly)
    get = staticmethod(remote.get_slowly)
    put_at = staticmethod(remote.put_at)
    get_at = staticmethod(remote.get_at)
    send = staticmethod(mailbox.send_slowly)
    move = staticmethod(mailbox.move)
    hpmove = staticmethod(mailbox.hpmove)
    decode = staticmethod(mailbox.decode)
    check_oblsync = staticmethod(oblivious.check_oblsync)
    oblsync = staticmethod(oblivious.oblsync)
    check_call = staticmethod(collective_mail.check_call)
    send_value = staticmethod(collective_mail.send_value)
    own_value = staticmethod(combinations.own_value)
    wire = staticmethod(combinations.wire)
    take_values = staticmethod(combinations.take_values)

    @staticmethod
    def check_usable(bsp: GroupState, operation: str, engine: Engine | None = None) -> None:
        """Raise unless this thread can use the group now, and an engine that it may have had."""
        bsp._check_usable(operation, engine)

    @staticmethod
    def fail(bsp: GroupState, error: BspError) -> NoReturn:
        """Raise an error as one that says where it happened."""
        bsp._fail(error)

    @staticmethod
    def fail_for_good(bsp: GroupState, error: BaseException) -> NoReturn:
        """Raise what has left the end of a superstep: the group cannot be used any more."""
        bsp._fail_for_good(error)
