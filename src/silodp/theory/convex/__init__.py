"""The convex paper's statements as functions."""
