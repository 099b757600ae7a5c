"""Epsilon from below: runs with a canary."""
