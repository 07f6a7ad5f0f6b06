"""Damaged files for every reader: each must be read or refused, whatever is in it."""
