"""What a program calls, with the checks of its arguments."""
