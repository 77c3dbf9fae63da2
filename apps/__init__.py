"""Programs written against bsplib, to be read and to be used."""
