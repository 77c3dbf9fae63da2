"""Cost models that replay a trace on any Machine, and formulas fitted to measurements."""
