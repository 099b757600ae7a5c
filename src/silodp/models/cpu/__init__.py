"""Compiled kernels of the models for a CPU."""
