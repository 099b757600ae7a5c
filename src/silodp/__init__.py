"""silodp: differentially private federated learning across silos, replicated."""

__version__ = "0.1.0"
