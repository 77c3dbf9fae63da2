"""The pages of a profile: the shaded call graph, served on this computer or saved to a file."""

from bsplib.webui.app import PortError, create_app, create_model_app, serve, serve_model
from bsplib.webui.page import write_html, write_model_html
from bsplib.webui.predicted import ShownModel

__all__ = [
    "PortError",
    "ShownModel",
    "create_app",
    "create_model_app",
    "serve",
    "serve_model",
    "write_html",
    "write_model_html",
]
