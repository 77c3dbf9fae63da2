"""What is on its way between processes."""
