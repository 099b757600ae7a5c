"""The columns of an experiment's tables, in their order."""

# Columns that name a run, and a point of its grid but for its ε.
_RUN = ["experiment", "algorithm", "reading", "M", "R"]
_POINT = ["stepsize", "clip", "phase_length"]

TABLE_COLUMNS = ["experiment", "algorithm", "reading", "private", "M", "R", "N", "n", "K", "delta", "epsilon"]
TABLE_COLUMNS += ["delivered_epsilon", "selection", "evaluation", *_POINT, "trials", "diverged", "train_loss_mean"]
TABLE_COLUMNS += ["test_error_mean", "test_error_p05", "test_error_p95", "seconds", "proven"]

# Written behind them: where the chosen point lies at an end of its grid, and the lower end of the true ε.
TABLE_EXTRA = ["edge", "delivered_lower"]

# One row a trial of the default report.
REPORTED_COLUMNS = [*_RUN, "epsilon", "trial", *_POINT, "train_loss", "test_error", "diverged"]

PRIVACY_COLUMNS = [*_RUN, "epsilon", "claimed_epsilon", "delivered_epsilon", "delta", "accountant", "adjacency"]
PRIVACY_COLUMNS += ["sampling", "noise_multiplier", "holds"]

# Written behind them: what some neighbouring silos reach; the ε of a person; the ε of a chosen run; the ε so far after
# the first round and after half of them. Empty where nothing is claimed or proven. Then the bits that a silo sends in
# the whole run, where its sums go through the shuffle protocol P_vec, and whether the claim is kept, violated or not
# certified.
PRIVACY_EXTRA = ["delivered_lower", "person_silos", "person_records", "epsilon_person", "selection_points"]
PRIVACY_EXTRA += ["epsilon_selection", "epsilon_first_round", "epsilon_half_rounds", "shuffled_bits", "claim"]

# ε so far at the end of some rounds, of each private algorithm at the middle ε of an experiment's first setting.
BY_ROUND_COLUMNS = ["experiment", "algorithm", "M", "R", "phase_length", "claimed_epsilon", "delta", "round", "epsilon"]
