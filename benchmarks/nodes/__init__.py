"""What node models are tried on: the runs that are fitted, and those that are held out."""
