"""Relational queries as BSP programs: the SQL application of Jarvis et al. 2002, section 4."""
