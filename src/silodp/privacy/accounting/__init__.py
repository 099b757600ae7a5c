"""The true ε: what the releases of a plan come to, composed over all rounds, under replace-one adjacency."""

from silodp.privacy.accounting.accountant import DeliveredEpsilon, delivered_epsilon, end_of_round_epsilon

__all__ = ["DeliveredEpsilon", "delivered_epsilon", "end_of_round_epsilon"]
