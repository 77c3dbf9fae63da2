"""``python -m apps.prediction``."""

from apps.prediction.prediction import command

command(prog_name="python -m apps.prediction")
