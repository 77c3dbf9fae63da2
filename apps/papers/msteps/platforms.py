"""What the paper prints of its platforms: Tables 1 to 3, and the errors in the text."""

from __future__ import annotations

from bsplib.apps.papers.msteps.model import Network, Transform

PVM = {
    "Origin 2000": Network(4.88e-8, -1.53e-5),
    "IBM SP2": Network(1.38e-7, 8.08e-5),
    "UTP LAN": Network(6.04e-6, 3.82e-3),
    "Coaxial LAN": Network(1.01e-5, 1.26e-2),
}
"""Table 1."""
MPI = {"Cray T3E": Network(2.92e-8, -2.11e-5), "Origin 2000": Network(5.53e-8, -1.75e-3)}
"""Table 2."""
_LAN = Transform(2.65e-6, 6.04e-7, 1.44e-6)
CONSTANTS = {
    "Origin 2000": Transform(2.39e-7, 5.52e-7, 2.84e-7),
    "IBM SP2": Transform(5.86e-7, 4.81e-7, 8.69e-7),
    "UTP LAN": _LAN,
    "Coaxial LAN": _LAN,
}
"""Table 3; the workstations of both networks are the same."""
VALUES = 524_288
"""Complex values of Figures 9 to 11."""
ERRORS = {"UTP LAN": 34.30, "Origin 2000": 34.10}
"""Percent at p = 8: section 4.1."""
