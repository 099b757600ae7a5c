"""True ε of released systems whose mechanism is given as data (config/systems/, docs/atlas.md)."""
