"""Labelled tables as numbers: which columns are numbers, and which categories."""
