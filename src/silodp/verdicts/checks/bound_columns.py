"""The columns of the tables about bounds, in their order."""

# From "form" on: which statement the row is about, the largest value that can be reached, a slope of the theorem's own
# formula, the exponents it is told from, what algorithms that do nothing come to, and what else there is to say.
BOUNDS_COLUMNS = ["check", "theorem", "parameter", "value", "lower", "measured", "measured_low", "measured_high"]
BOUNDS_COLUMNS += ["upper", "verdict", "form", "reach", "formula", "rivals", "null", "detail"]
