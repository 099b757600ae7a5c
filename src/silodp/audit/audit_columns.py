"""The columns of the tables of audits, in their order."""

AUDIT_COLUMNS = ["experiment", "algorithm", "setting", "phase_length", "claimed_epsilon", "delta", "delivered_epsilon"]
# The check's finding, and its p-value.
AUDIT_COLUMNS += ["mechanism", "mechanism_p"]

AS_PLANNED = "as planned"
