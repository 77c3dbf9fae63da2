"""Programs that use bsplib, as examples and for use."""
