"""A port over streams of bytes, for backends whose processes share nothing."""

from bsplib.backends.stream.port import Stream
from bsplib.backends.stream.workers import Workers, serve

__all__ = ["Stream", "Workers", "serve"]
