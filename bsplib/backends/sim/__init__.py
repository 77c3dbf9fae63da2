"""Virtual processors: any number of processes inside one, in virtual time."""
