"""The non-convex paper's statements as functions."""
