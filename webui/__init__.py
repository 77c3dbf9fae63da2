"""The pages over the profiler: a shaded call graph, served on loopback or saved."""

from webui.app import PortError, create_app, serve
from webui.page import write_html

__all__ = ["PortError", "create_app", "serve", "write_html"]
