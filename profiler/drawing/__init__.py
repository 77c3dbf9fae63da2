"""The shaded call graph drawn: which nodes are shown, how red each is, and the picture."""
