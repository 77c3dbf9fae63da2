"""A program that makes every kind of call, one function for each kind; it knows nothing of bsplib.

Its results are printed, so that those with and without the recorder can be compared.
"""

import sys

import numpy as np
from mpi4py import MPI

X = np.arange(10.0)


def neighbours_of(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def messages(comm):
    right, left = neighbours_of(comm)
    y = np.empty(10)
    comm.Sendrecv(X, right, 3, y, left, 3)
    receive, send = comm.Irecv(y, left, 4), comm.Isend(X[:5], right, 4)
    send.Wait()
    receive.Wait()
    comm.Send(X, MPI.PROC_NULL)
    return y


def any_source(comm):
    y = np.zeros(10)
    if comm.rank == 0:
        for _ in range(1, comm.size):
            comm.Recv(y, MPI.ANY_SOURCE, 7)
    else:
        comm.Send(X[: comm.rank], 0, 7)


def objects(comm):
    right, left = neighbours_of(comm)
    request = comm.isend({"of": comm.rank}, right)
    received = comm.recv(source=left)
    request.wait()
    return received


def persistent(comm):
    right, left = neighbours_of(comm)
    y = np.empty(10)
    receive, send = comm.Recv_init(y, left, 5), comm.Send_init(X, right, 5)
    for _ in range(2):
        MPI.Prequest.Startall([receive, send])
        MPI.Request.Waitall([receive, send])
    receive.Free()
    send.Free()
    return y


def repeated(comm):
    y = np.zeros(10)
    request = comm.Allreduce_init(X, y)
    for _ in range(2):
        request.Start()
        request.Wait()
    request.Free()
    return y


def polls(comm):
    right, left = neighbours_of(comm)
    y = np.empty(10)
    request = comm.Irecv(y, left, 6)
    found = [request.Test() for _ in range(200)]
    comm.Barrier()
    comm.Send(X, right, 6) if comm.size > 1 else comm.Isend(X, right, 6).Wait()
    request.Wait()
    return any(found)


def probes(comm):
    right, left = neighbours_of(comm)
    y = np.empty(10)
    status = MPI.Status()
    send = comm.Isend(X, right, 8)
    comm.Probe(MPI.ANY_SOURCE, 8, status)
    comm.Recv(y, status.source, 8)
    send.Wait()
    send = comm.Isend(X, right, 9)
    comm.Mprobe(left, 9).Recv(y)
    send.Wait()
    return y


def collectives(comm):
    size = comm.size
    last = size - 1
    many, y = np.zeros(10 * size), np.zeros(10)
    comm.Barrier()
    comm.Bcast(y, last)
    comm.Gather(X, many, last)
    comm.Scatter(many, y, last)
    comm.Allgather(X, many)
    comm.Alltoall(many, many.copy())
    comm.Reduce(X, y, MPI.SUM, last)
    comm.Allreduce(X, y)
    comm.Reduce_scatter_block(many, y)
    comm.Scan(X, y)
    comm.Exscan(X, y)
    return y if comm.rank else X


def in_place(comm):
    many, y = np.zeros(10 * comm.size), np.ones(10)
    comm.Allreduce(MPI.IN_PLACE, y)
    comm.Allgather(MPI.IN_PLACE, many)
    if comm.rank == 0:
        comm.Gather(MPI.IN_PLACE, many)
        comm.Scatter(many, MPI.IN_PLACE)
    else:
        comm.Gather(X, None)
        comm.Scatter(None, y)
    return y


def vectors(comm):
    size, rank = comm.size, comm.rank
    counts = [i + 1 for i in range(size)]
    many = np.zeros(sum(counts))
    mine = np.ones(rank + 1)
    comm.Gatherv(mine, [many, counts])
    comm.Scatterv([many, counts], mine)
    comm.Allgatherv(mine, [many, counts])
    out, into = np.ones((rank + 1) * size), np.zeros(sum(counts))
    comm.Alltoallv([out, [rank + 1] * size], [into, counts])
    of_two = np.ones(2 * size)
    steps = [16 * i for i in range(size)]
    comm.Alltoallw(
        [of_two, [2] * size, steps, [MPI.DOUBLE] * size],
        [of_two.copy(), [2] * size, steps, [MPI.DOUBLE] * size],
    )
    comm.Reduce_scatter(many, mine, counts)
    return into


def nonblocking(comm):
    y = np.zeros(10)
    requests = [comm.Iallreduce(X, y), comm.Ibarrier()]
    MPI.Request.Waitall(requests)
    receive = comm.Irecv(y, comm.rank, 11)
    comm.Isend(X, comm.rank, 11).Wait()
    MPI.Request.Waitany([receive])
    return y


def communicators(comm):
    made = [comm.Dup(), comm.Split(comm.rank % 2), comm.Split(0 if comm.rank else MPI.UNDEFINED)]
    made += [comm.Create_cart([comm.size], [True]), comm.Split_type(MPI.COMM_TYPE_SHARED)]
    right, left = neighbours_of(comm)
    made.append(comm.Create_dist_graph_adjacent([left], [right]))
    if comm.rank == 0:
        group = comm.group.Incl([0])
        made.append(comm.Create_group(group))
    made.append(comm.Clone())
    made[-1].Barrier()
    for each in made:
        if each != MPI.COMM_NULL:
            each.Free()


def copies(comm):
    copy, request = comm.Idup()
    request.Wait()
    copy.Barrier()
    again = copy.Dup()
    again.Barrier()


def across(comm):
    if comm.size == 1:
        return None
    is_low = comm.rank < comm.size // 2
    half = comm.Split(is_low)
    inter = half.Create_intercomm(0, comm, comm.size // 2 if is_low else 0)
    y = np.zeros(10)
    inter.Allreduce(X, y)
    root = (MPI.ROOT if comm.rank == 0 else MPI.PROC_NULL) if is_low else 0
    inter.Bcast(y, root)
    merged = inter.Merge(not is_low)
    merged.Barrier()
    return y


def neighbourhoods(comm):
    cart = comm.Create_cart([comm.size], [True])
    out, into = np.ones(4), np.zeros(4)
    cart.Neighbor_alltoall(out, into)
    cart.Neighbor_allgather(out[:2], into)
    return into


def derived(comm):
    right, left = neighbours_of(comm)
    every_other = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
    y = np.zeros(10)
    comm.Sendrecv([X, 1, every_other], right, 1, [y, 1, every_other], left, 1)
    every_other.Free()
    return y


def windows(comm):
    right, left = neighbours_of(comm)
    memory = np.zeros(10)
    window = MPI.Win.Create(memory, memory.itemsize, comm=comm)
    window.Fence()
    window.Put(X[:4], right)
    window.Accumulate(X[:2], right)
    window.Fence()
    y = np.zeros(3)
    window.Lock(right)
    window.Get(y, right)
    window.Unlock(right)
    window.Lock(right, MPI.LOCK_SHARED)
    window.Unlock(right)
    comm.Barrier()
    origins, targets = comm.group.Incl([left]), comm.group.Incl([right])
    window.Post(origins)
    window.Start(targets)
    window.Put(X[:4], right)
    window.Complete()
    window.Wait()
    window.Free()
    return y


def files(comm):
    file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
    y = np.zeros(10)
    file.Write_at_all(comm.rank * X.nbytes, X)
    file.Sync()
    comm.Barrier()
    file.Read_at(((comm.rank + 1) % comm.size) * X.nbytes, y)
    request = file.Iread_at(0, y)
    request.Wait()
    file.Close()
    return y


def errors(comm):
    try:
        comm.Send(X, comm.size + 5)
    except MPI.Exception as error:
        return error.Get_error_class() == MPI.ERR_RANK
    return None


def freed(comm):
    request = comm.Isend(X, comm.rank, 12)
    request.Free()
    y = np.zeros(10)
    comm.Recv(y, comm.rank, 12)
    request = comm.Irecv(y, comm.rank, 13)
    request.Cancel()
    request.Wait()


KINDS = (
    messages,
    any_source,
    objects,
    persistent,
    repeated,
    polls,
    probes,
    collectives,
    in_place,
    vectors,
    nonblocking,
    communicators,
    copies,
    across,
    neighbourhoods,
    derived,
    windows,
    files,
    errors,
    freed,
)


def main():
    comm = MPI.COMM_WORLD
    results = [(kind.__name__, repr(kind(comm))) for kind in KINDS]
    gathered = comm.gather(results)
    if comm.rank == 0:
        for rank, each in enumerate(gathered):
            print(rank, *each, sep="\n")


main()
