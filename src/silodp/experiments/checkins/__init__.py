"""Random check-ins against other amplification."""
