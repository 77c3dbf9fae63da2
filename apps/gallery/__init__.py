"""Short programs, each in one file, that show how bsplib is used.

``python -m bsplib.apps.gallery.heat`` runs one, and so does ``bsp run -n 2 -m
bsplib.apps.gallery.heat``. Each has a function ``main`` whose arguments have defaults with which it
takes half a second or more on two processes, and which returns the whole result on process 0.
Beside fourteen of them is the same program in mpi4py: ``mpiexec -n 2 python -m
bsplib.apps.gallery.heat_mpi4py``. Sequential programs that compute the same are in
:mod:`bsplib.apps.gallery.references`. :mod:`bsplib.apps.gallery.map_files` needs no group, and is
beside the same in multiprocessing.
"""
