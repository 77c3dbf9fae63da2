"""The calls of MPI that the shim records: what each does, and what it adds to its row.

A line is ``ROLE: names | parameters | before | after``. What a role means says
:class:`bsplib.record.joining.calls.Role`; a call without one is any other. Parameters are named by
:data:`PARAMETERS`, which has their types; the rules are the functions of ``rules.c``, with ``c``
as the call. ``before`` is executed before MPI is called, and ``after`` if the call has succeeded,
or in any case if it begins with ``*``; then it is told the ``error``. Two parameters imply rules:
``comm`` is the communicator of the row; a ``status`` that the program ignores is replaced by one of
the recorder. ``$sns`` stands for an array of counts; ``COUNT`` and ``DISPL`` for int or, in the
variants for large counts, for MPI_Count and MPI_Aint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_BY_TYPE = {
    "const void *{}": "sb cb",
    "COUNT {}": "sn rn tn",
    "MPI_Datatype {}": "st rt tt",
    "const COUNT {}[]": "sns rns",
    "const DISPL {}[]": "sds rds",
    "const MPI_Aint {}[]": "sas ras",
    "const MPI_Datatype {}[]": "sts rts",
    "void *{}": "rb base",
    "int {}": "dest source root rank tag rtag parts low high key colour count degree "
    "reorder assertion lock mode",
    "MPI_Comm {}": "comm peer",
    "MPI_Op {}": "op",
    "MPI_Status *{}": "status statuses",
    "MPI_Request *{}": "req",
    "MPI_Request {}": "request",
    "MPI_Info {}": "info",
    "int *{}": "flag index done",
    "MPI_Request {}[]": "requests",
    "int {}[]": "indices codes",
    "MPI_Message *{}": "message",
    "MPI_Count {}": "pn",
    "const int {}[]": "list ints more_ints weights more_weights",
    "MPI_Comm *{}": "made freed",
    "MPI_Group {}": "group other_group",
    "const char *{}": "text command",
    "MPI_Errhandler {}": "handler",
    "MPI_Win {}": "win",
    "MPI_Win *{}": "wins",
    "MPI_Aint {}": "size disp",
    "UNIT {}": "unit",
    "MPI_File {}": "file",
    "MPI_File *{}": "files",
    "MPI_Offset {}": "offset",
    "COUNT *{}": "released",
    "char *{}[]": "commands vector",
    "char ***{}": "vectors",
    "const MPI_Info {}[]": "infos",
}
"""Names of parameters by their types."""
PARAMETERS = {name: kind.format(name) for kind, names in _BY_TYPE.items() for name in names.split()}

LARGE = {"COUNT": "MPI_Count", "DISPL": "MPI_Aint", "UNIT": "MPI_Aint"}
SMALL = {"COUNT": "int", "DISPL": "int", "UNIT": "int"}

MESSAGES = """
SEND: Send Bsend Ssend Rsend | sb sn st dest tag comm | sends(c, dest, tag, sn, st)
SEND_START: Isend Ibsend Issend Irsend | sb sn st dest tag comm req | \
    sends(c, dest, tag, sn, st) | \
    started(c, req, NOTHING_ARRIVES)
Send_init Bsend_init Ssend_init Rsend_init | sb sn st dest tag comm req | \
    sends(c, dest, tag, sn, st) | prepared(c, req, CALL_Start, NOTHING_ARRIVES)
RECEIVE: Recv | rb rn rt source tag comm status | receives(c, source, tag) | arrived(c, status)
RECEIVE_START: Irecv | rb rn rt source tag comm req | receives(c, source, tag) | \
    started(c, req, MESSAGE_ARRIVES)
Recv_init | rb rn rt source tag comm req | receives(c, source, tag) | \
    prepared(c, req, CALL_Start, MESSAGE_ARRIVES)
BOTH: Sendrecv | sb sn st dest tag rb rn rt source rtag comm status | \
    sends(c, dest, tag, sn, st) | exchanged(c, status)
BOTH: Sendrecv_replace | rb sn st dest tag source rtag comm status | \
    sends(c, dest, tag, sn, st) | exchanged(c, status)
BOTH_START: Isendrecv | sb sn st dest tag rb rn rt source rtag comm req | \
    sends(c, dest, tag, sn, st) | \
    started(c, req, MESSAGE_ARRIVES)
BOTH_START: Isendrecv_replace | rb sn st dest tag source rtag comm req | \
    sends(c, dest, tag, sn, st) | \
    started(c, req, MESSAGE_ARRIVES)
PROBE: Probe | source tag comm status | receives(c, source, tag) | found(c, 1, status)
POLL: Iprobe | source tag comm flag status | receives(c, source, tag) | found(c, *flag, status)
PROBE: Mprobe | source tag comm message status | receives(c, source, tag) | \
    found(c, 1, status); probed(c, *message)
POLL: Improbe | source tag comm flag message status | receives(c, source, tag) | \
    found(c, *flag, status); if (*flag) probed(c, *message)
RECEIVE: Mrecv | rb rn rt message status | matched(c, *message) | arrived_at_last(c, status)
RECEIVE_START: Imrecv | rb rn rt message req | matched(c, *message) | \
    started(c, req, MESSAGE_ARRIVES)
Psend_init | sb parts pn st dest tag comm info req | sends(c, dest, tag, parts * pn, st) | \
    prepared(c, req, CALL_Start, NOTHING_ARRIVES)
Precv_init | rb parts pn st source tag comm info req | receives(c, source, tag) | \
    prepared(c, req, CALL_Start, MESSAGE_ARRIVES)
Pready | parts request
Pready_range | low high request
Pready_list | count list request
Parrived | request parts flag | | if (!*flag) polled(c)
Buffer_detach | rb released
START: Start | req | starts(c, *req)
Startall | count requests | if (count > 0) starts(c, requests[0]) | \
    * finish(); more_starts(count, requests, c->row->leave)
COMPLETE: Wait | req status | MPI_Request was = *req; about(c, was) | \
    * completed_one(c, error, was, req, status)
COMPLETE: Test | req flag status | MPI_Request was = *req; about(c, was) | \
    * if (!error && !*flag) polled(c); else completed_one(c, error, was, req, status)
COMPLETE: Waitall | count requests statuses | look(count, requests, &statuses) | \
    * completed_all(c, error, requests)
COMPLETE: Testall | count requests flag statuses | look(count, requests, &statuses) | \
    * if (!error && !*flag) polled(c); else completed_all(c, error, requests)
COMPLETE: Waitany | count requests index status | look(count, requests, NULL); \
    *index = MPI_UNDEFINED | * completed_at(c, *index, status)
COMPLETE: Testany | count requests index flag status | look(count, requests, NULL); \
    *index = MPI_UNDEFINED | \
    * if (!error && !*flag) polled(c); else completed_at(c, *index, status)
COMPLETE: Waitsome Testsome | count requests done indices statuses | \
    look(count, requests, &statuses); *done = MPI_UNDEFINED | \
    * if (!error && *done == 0) polled(c); else completed_some(c, *done, indices)
Request_free | req | struct request *freed = about(c, *req) | if (freed) forget_request(freed)
Cancel | req | about(c, *req)
"""

COLLECTIVES = """
ALL: Barrier | comm
FROM_ROOT: Bcast | rb sn st root comm | broadcasts(c, root, sn, st)
TO_ROOT: Gather | sb sn st rb rn rt root comm | gathers(c, 1, root, sb, sn, st, rn, rt)
TO_ROOT: Gatherv | sb sn st rb rns rds rt root comm | gathers_v(c, 1, root, sb, sn, st, $rns, rt)
FROM_ROOT: Scatter | sb sn st rb rn rt root comm | gathers(c, 0, root, rb, rn, rt, sn, st)
FROM_ROOT: Scatterv | sb sns sds st rb rn rt root comm | gathers_v(c, 0, root, rb, rn, rt, $sns, st)
ALL: Allgather | sb sn st rb rn rt comm | allgathers(c, sb, sn, st, rn, rt)
ALL: Allgatherv | sb sn st rb rns rds rt comm | allgathers_v(c, sb, sn, st, $rns, rt)
ALL: Alltoall | sb sn st rb rn rt comm | all_to_all(c, sb, sn, st, rn, rt)
ALL: Alltoallv | sb sns sds st rb rns rds rt comm | \
    all_to_all_v(c, sb, $sns, ONE(st), $rns, ONE(rt))
ALL: Alltoallw | sb sns sds sts rb rns rds rts comm | \
    all_to_all_v(c, sb, $sns, EACH(sts), $rns, EACH(rts))
TO_ROOT: Reduce | sb rb sn st op root comm | reduces(c, root, sn, st)
ALL: Allreduce | sb rb sn st op comm | combines(c, sn, st)
ALL: Reduce_scatter | sb rb rns st op comm | reduces_parts(c, $rns, st)
ALL: Reduce_scatter_block | sb rb sn st op comm | reduces_blocks(c, sn, st)
PREFIX: Scan | sb rb sn st op comm | combines(c, sn, st)
PREFIX: Exscan | sb rb sn st op comm | combines_earlier(c, sn, st)
NEIGHBOURS: Neighbor_allgather | sb sn st rb rn rt comm | to_neighbours(c, SAME(sn), ONE(st), 0); \
    from_neighbours(c, SAME(rn), ONE(rt), 0)
NEIGHBOURS: Neighbor_allgatherv | sb sn st rb rns rds rt comm | \
    to_neighbours(c, SAME(sn), ONE(st), 0); \
    from_neighbours(c, $rns, ONE(rt), 1)
NEIGHBOURS: Neighbor_alltoall | sb sn st rb rn rt comm | to_neighbours(c, SAME(sn), ONE(st), 0); \
    from_neighbours(c, SAME(rn), ONE(rt), 0)
NEIGHBOURS: Neighbor_alltoallv | sb sns sds st rb rns rds rt comm | \
    to_neighbours(c, $sns, ONE(st), 1); \
    from_neighbours(c, $rns, ONE(rt), 1)
NEIGHBOURS: Neighbor_alltoallw | sb sns sas sts rb rns ras rts comm | \
    to_neighbours(c, $sns, EACH(sts), 1); \
    from_neighbours(c, $rns, EACH(rts), 1)
"""
"""Each has a non-blocking and a persistent variant with the same rule."""

COMMUNICATORS = """
ALL: Comm_dup | comm made | | makes(c, made, BY_ALL)
ALL: Comm_dup_with_info | comm info made | | makes(c, made, BY_ALL)
ALL: Comm_idup | comm made req | | copies(c, made, req)
ALL: Comm_idup_with_info | comm info made req | | copies(c, made, req)
ALL: Comm_create | comm group made | | makes(c, made, BY_ALL)
Comm_create_group | comm group key made | | makes(c, made, BY_SOME)
Comm_create_from_group | group text info handler made
ALL: Comm_split | comm colour key made | | makes(c, made, BY_ALL)
ALL: Comm_split_type | comm colour key info made | | makes(c, made, BY_ALL)
ALL: Cart_create | comm count ints more_ints reorder made | | makes(c, made, BY_ALL)
ALL: Cart_sub | comm ints made | | makes(c, made, BY_ALL)
ALL: Graph_create | comm count ints more_ints reorder made | | makes(c, made, BY_ALL)
ALL: Dist_graph_create | comm count ints more_ints weights more_weights info reorder made | | \
    makes(c, made, BY_ALL)
ALL: Dist_graph_create_adjacent | \
    comm count ints weights degree more_ints more_weights info reorder \
    made | | makes(c, made, BY_ALL)
Intercomm_create | comm count peer key tag made | | makes(c, made, BY_SOME)
Intercomm_create_from_groups | group key other_group degree text info handler made
ALL: Intercomm_merge | comm high made | | makes(c, made, BY_ALL)
Comm_spawn | command vector count info root comm made codes | spawned() | makes(c, made, BY_SOME)
Comm_spawn_multiple | count commands vectors ints infos root comm made codes | spawned() | \
    makes(c, made, BY_SOME)
Comm_accept | text info root comm made | | makes(c, made, BY_SOME)
Comm_connect | text info root comm made | | makes(c, made, BY_SOME)
Comm_join | key made | | makes(c, made, BY_SOME)
Comm_free Comm_disconnect | freed | on_comm(c, *freed) | if (c->comm) c->comm->freed = 1
"""

WINDOWS = """
ALL: Win_create | base size unit info comm wins | | opened(c, *wins)
ALL: Win_allocate Win_allocate_shared | size unit info comm base wins | | opened(c, *wins)
ALL: Win_create_dynamic | info comm wins | | opened(c, *wins)
ALL: Win_free | wins | struct window *window = on_window(c, *wins) | if (window) forget(window)
ALL: Win_fence | assertion win | on_window(c, win)
TARGET: Win_lock | lock rank assertion win | on_target(c, win, rank); \
    c->row->tag = lock == MPI_LOCK_EXCLUSIVE
TARGET: Win_unlock Win_flush | rank win | on_target(c, win, rank)
Win_flush_local | rank win
Win_lock_all | assertion win
Win_post Win_start | group assertion win
Win_unlock_all Win_flush_all Win_flush_local_all Win_complete Win_wait Win_sync | win
Win_test | win flag | | if (!*flag) polled(c)
PUT: Put | sb sn st rank disp tn tt win | accesses(c, win, rank, volume(sn, st), 0)
GET: Get | rb sn st rank disp tn tt win | accesses(c, win, rank, 0, volume(sn, st))
PUT: Accumulate | sb sn st rank disp tn tt op win | accesses(c, win, rank, volume(sn, st), 0)
GET_AND_PUT: Get_accumulate | sb sn st rb rn rt rank disp tn tt op win | \
    accesses(c, win, rank, volume(sn, st), volume(rn, rt))
GET_AND_PUT: Fetch_and_op | sb rb st rank disp op win | \
    accesses(c, win, rank, volume(1, st), volume(1, st))
GET_AND_PUT: Compare_and_swap | sb cb rb st rank disp win | \
    accesses(c, win, rank, volume(1, st), volume(1, st))
PUT: Rput | sb sn st rank disp tn tt win req | accesses(c, win, rank, volume(sn, st), 0) | \
    started(c, req, NOTHING_ARRIVES)
GET: Rget | rb sn st rank disp tn tt win req | accesses(c, win, rank, 0, volume(sn, st)) | \
    started(c, req, NOTHING_ARRIVES)
PUT: Raccumulate | sb sn st rank disp tn tt op win req | \
    accesses(c, win, rank, volume(sn, st), 0) | started(c, req, NOTHING_ARRIVES)
GET_AND_PUT: Rget_accumulate | sb sn st rb rn rt rank disp tn tt op win req | \
    accesses(c, win, rank, volume(sn, st), volume(rn, rt)) | started(c, req, NOTHING_ARRIVES)
"""

FILES = """
FILE: File_open | comm text mode info files
FILE: File_close | files
FILE: File_delete | text info
FILE: File_sync | file
FILE: File_set_size File_preallocate | file offset
FILE: File_set_view | file offset st tt text info
FILE: File_read File_read_all File_read_shared File_read_ordered | file rb sn st status
FILE: File_read_at File_read_at_all | file offset rb sn st status
FILE: File_iread File_iread_all File_iread_shared | file rb sn st req | | \
    started(c, req, NOTHING_ARRIVES)
FILE: File_iread_at File_iread_at_all | file offset rb sn st req | | \
    started(c, req, NOTHING_ARRIVES)
FILE: File_read_all_begin File_read_ordered_begin | file rb sn st
FILE: File_read_at_all_begin | file offset rb sn st
FILE: File_read_all_end File_read_at_all_end File_read_ordered_end | file rb status
FILE: File_write File_write_all File_write_shared File_write_ordered | file sb sn st status
FILE: File_write_at File_write_at_all | file offset sb sn st status
FILE: File_iwrite File_iwrite_all File_iwrite_shared | file sb sn st req | | \
    started(c, req, NOTHING_ARRIVES)
FILE: File_iwrite_at File_iwrite_at_all | file offset sb sn st req | | \
    started(c, req, NOTHING_ARRIVES)
FILE: File_write_all_begin File_write_ordered_begin | file sb sn st
FILE: File_write_at_all_begin | file offset sb sn st
FILE: File_write_all_end File_write_at_all_end File_write_ordered_end | file sb status
"""
"""Of these, time and line are recorded, and that a request was started."""


class Function(NamedTuple):
    """A call of MPI: its name without MPI_, its role, its parameters by name, and its rules."""

    name: str
    role: str
    parameters: tuple[str, ...]
    before: str
    after: str


def _read(table: str) -> Iterator[Function]:
    for line in table.strip().splitlines():
        names, parameters, before, after = (*map(str.strip, line.split("|")), "", "", "")[:4]
        role, colon, called = names.partition(": ")
        for name in (called or names).split():
            yield Function(
                name, role if colon else "OTHER", tuple(parameters.split()), before, after
            )


def _collectives() -> Iterator[Function]:
    """Yield each collective, its non-blocking and its persistent variant."""
    for blocking in _read(COLLECTIVES):
        name, parameters = blocking.name, blocking.parameters
        yield blocking
        yield blocking._replace(
            name=f"I{name.lower()}",
            parameters=(*parameters, "req"),
            after="started(c, req, NOTHING_ARRIVES)",
        )
        yield blocking._replace(
            name=f"{name}_init",
            role="OTHER",
            parameters=(*parameters, "info", "req"),
            after=f"prepared(c, req, CALL_I{name.lower()}, NOTHING_ARRIVES)",
        )


BY_HAND = (
    Function("Init", "INIT", (), "", ""),
    Function("Finalize", "FINALIZE", (), "", ""),
    Function("Abort", "OTHER", (), "", ""),
)
"""Their wrappers are in ``by_hand.c``."""
GENERATED = (
    *(each for table in (MESSAGES, COMMUNICATORS, WINDOWS, FILES) for each in _read(table)),
    *_collectives(),
)
CALLS = (*BY_HAND, *GENERATED)
"""All calls; the number of a call in a row is its position."""
