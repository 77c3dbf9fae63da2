"""``python -m bsplib.apps.prediction``."""

from bsplib.apps.prediction.prediction import command

command(prog_name="python -m bsplib.apps.prediction")
