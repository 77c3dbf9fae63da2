"""The pages of a profile: the shaded call graph, served on this computer or saved to a file."""

from webui.app import PortError, create_app, serve
from webui.page import write_html

__all__ = ["PortError", "create_app", "serve", "write_html"]
