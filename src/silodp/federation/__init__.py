"""Silos and server: records, messages, randomness, and the models whose gradients are sent."""
