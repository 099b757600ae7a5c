"""Losses of messages, composed: what `silodp.privacy.true_epsilon` is made of. Read `accountant.py` first."""

from silodp.privacy.accounting.events import delivered_epsilon

__all__ = ["delivered_epsilon"]
