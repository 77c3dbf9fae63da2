"""``bsp probe``: the parameters of this computer, measured by runs. Stands above ``running``."""
