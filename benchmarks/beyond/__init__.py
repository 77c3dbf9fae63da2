"""Programs of several kinds, recorded at small sizes and predicted at large ones."""
