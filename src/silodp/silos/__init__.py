"""Silos that keep their own promise: each answers its own plan's questions, with its own file, noise and ledger.

In: `federation.yaml`, which all agree on, a silo's file and its ledger. Out: replies of fixed bytes, and a line in the
ledger for what they cost. Read `taking_part.py` first, then `silo.py`.
"""
