"""Which experiments of config/experiments the leaderboard ranks algorithms by."""

from silodp.config.loading import known_experiments


def on_board(experiment: str) -> bool:
    return known_experiments().get(experiment, {}).get("board") == "leaderboard"


def heterogeneity_axis(experiment: str) -> str:
    """The axis of heterogeneity that an experiment is a point of, as silos.alpha; empty where it is on none."""
    return str(known_experiments().get(experiment, {}).get("vary", ""))
