"""Trials of several files: those of a variant name the points that the default reading stands for, others do not."""

import pandas as pd
from gridrows import rows

from silodp.cli.tables import trained_rows
from silodp.experiments.selection import losses


def test_losses_of_files_with_and_without_the_column_trained():
    default = rows("minibatch_sgd", [[0.3, 0.2], [0.4, 0.1]])
    variant = rows("minibatch_sgd", [[0.5, 0.6], [0.5, 0.6]], reading="stepsize_grid=exponential")
    variant["trained"] = [True, False, True, False]
    found = losses(trained_rows(pd.concat([default, variant], ignore_index=True)))
    assert found["train_loss_mean"].round(12).tolist() == [0.35, 0.15, 0.5]
    assert losses(trained_rows(default)).equals(losses(default))
