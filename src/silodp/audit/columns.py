"""The columns of the tables of audits, in their order."""

AUDIT_COLUMNS = ["experiment", "algorithm", "setting", "phase_length", "claimed_epsilon", "delta", "delivered_epsilon"]
AUDIT_COLUMNS += ["audited_lower", "confidence", "runs", "holds"]

# Written behind them: the bound by the whole profile, how much noise it leaves possible, whether the plan's own profile
# stands, and the mechanism test's finding with its p-value.
AS_PLANNED = "as planned"
AUDIT_EXTRA = ["audited_profile", "noise_below", "profile_holds", "mechanism", "mechanism_p"]
