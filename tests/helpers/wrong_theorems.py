"""Checks whose theorems, exponents or constants are wrong on purpose."""

import dataclasses

from silodp.verdicts.checks.base import sweep_rows


def planted(context, key, change):
    """A context in which `change(result, parameters)` alters what one theorem gives."""
    theorem = context.theorems[key]
    wrong = dataclasses.replace(theorem, function=lambda **given: change(theorem.function(**given), given))
    return dataclasses.replace(context, theorems={**context.theorems, key: wrong})


def times(factor):
    """A change that multiplies the value."""
    return lambda result, parameters: dataclasses.replace(result, value=factor * result.value)


def measured_once(sweep):
    """The sweep with its samples kept, so that several claims can be held against the same runs."""
    samples = {}

    def sample(value):
        if value not in samples:
            samples[value] = sweep.sample(value)
        return samples[value]

    return dataclasses.replace(sweep, sample=sample)


def last_row(sweep, context, exponent=None, rivals=None):
    """The row of the slope; of another exponent than is stated, where `exponent` is given."""
    if exponent is not None:
        formula = lambda value: value**exponent  # noqa: E731
        sweep = dataclasses.replace(sweep, exponent=exponent, neighbours=rivals, formula=formula)
    return sweep_rows(sweep, context.streams)[-1]
