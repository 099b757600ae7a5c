"""The check-ins paper's statements as functions."""
