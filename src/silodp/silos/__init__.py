"""Silos as processes of their own: each answers its own plan's questions, with its own file, noise and ledger.

In: `federation.yaml`, which all agree on, and each silo's `silo.yaml` and file. Out: replies of fixed bytes, a model at
the coordinator, a line in each silo's ledger. Read `silo.py` first, then `coordinator.py`; docs/federate.md.
"""
