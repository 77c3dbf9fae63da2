"""The pages of a profile: the shaded call graph, served on this computer or saved to a file."""

from importlib import import_module
from typing import TYPE_CHECKING

from bsplib.webui.page import write_html, write_model_html

if TYPE_CHECKING:
    from bsplib.webui.app import PortError, create_app, create_model_app, serve, serve_model
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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the server, and node models, when they are used first: most pages have neither."""
        if name not in __all__:
            raise AttributeError(f"module 'bsplib.webui' has no attribute {name!r}")
        module = "predicted" if name == "ShownModel" else "app"
        return getattr(import_module(f"bsplib.webui.{module}"), name)
