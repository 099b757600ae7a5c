"""Theorems of the three papers as functions (being filled)."""
