"""Silos that keep their own promise: what each has released of its records, and what that costs together.

Read `ledger.py` first.
"""
