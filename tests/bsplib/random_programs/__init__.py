"""Programs drawn at random, and what the contract says that they do."""
