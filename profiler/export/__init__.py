"""Profiles in the formats of other tools: one format in each module, all listed in ``table``."""
