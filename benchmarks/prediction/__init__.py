"""Data, programs and settings by which the accuracy of predictions is measured."""
