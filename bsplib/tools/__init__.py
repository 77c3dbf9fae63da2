"""What people start: the ``bsp`` command, the extension of notebooks, the plugin of pytest."""
