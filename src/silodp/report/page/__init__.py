"""The self-contained page of a run."""
