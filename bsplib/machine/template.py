"""The template of a Machine: a file that a user fills in to describe a cluster."""

TEMPLATE = """\
# A Machine: the parameters of a computer, by which bsplib predicts the time of a program.
# Replace the figures by those of your cluster. Then learn from small runs of a program:
#   bsp predict --at n=2^30,p={processes} --machine {file} TRACE...

version = 3
name = "my cluster"
source = "my estimate"       # where the figures come from, for readers of a prediction

# Nodes x cores: processes fill one core each, and node after node.
# More than {nodes} x {cores} = {processes} processes share the cores.
nodes = {nodes}
cores = {cores}                   # of each node

# The speed of a process while all cores of a node compute, compared with the computer that
# recorded the program: 2.0 is twice as fast. In its place, where both speeds are known:
# speed_flop_per_s = 2.0e9
relative_speed = 1.0

# Between nodes. g: seconds for each byte into or out of a process. A link of 12.5 GB/s (100
# Gbit/s) that 16 processes of a node share is 0.8 GB/s for each: 1 / 0.8e9 = 1.25e-9.
g_s_per_byte = 1.25e-9
# l: seconds to end a superstep: about 2 log2(nodes) times the latency of a message.
l_s = 2.0e-5
h = "max"                    # h of a process: max or sum of the bytes in and the bytes out

# Inside a node, for groups of at most as many processes as it has cores.
[inside]
g_s_per_byte = 5.0e-10
l_s = 2.0e-6
"""

_NODES, _CORES = 8, 16


def template(file: str) -> str:
    """Return the text of a new file.

    Args:
        file: its name, for the example of a command.
    """
    return TEMPLATE.format(file=file, nodes=_NODES, cores=_CORES, processes=_NODES * _CORES)
