"""``bsp machine probe``: measures this computer by runs. Stands above ``running``."""
