"""Runs of a program with several values of its parameters: what a value trades, and which is best.

Source: Jarvis et al. 2002, section 4.3, Figures 7 and 8.
"""
