"""Amplification by shuffling, and sums through a shuffler."""
