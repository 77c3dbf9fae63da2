"""Sample sort of records, written for bsplib and its peers."""
