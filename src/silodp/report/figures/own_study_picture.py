"""The figure of a study of one's own data: test error against ε, between guessing and what is learnt without noise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from silodp.report.figures.axes import draw_line, new_axes, set_epsilon_axis, set_page
from silodp.report.figures.style import looks, sort_algorithms, styled
from silodp.report.numbers import measured

WORDS = {
    "guess": "guessing",
    "pooled": "all records in one place, no noise",
    "best silo": "best model of a single silo, no noise",
    "minibatch_sgd": "federated",
    "local_sgd": "federated, local steps",
    "silo_only": "each silo by itself",
}
_LINES = {"guess": "#6e6e6e", "pooled": "#000000", "best silo": "#9c6b00"}


def model_title(name: str) -> str:
    """What the page of one's own data calls a baseline or an algorithm."""
    return WORDS.get(name) or f"federated ({name.replace('_', ' ')})"


def study_figure(models: Sequence[Mapping[str, Any]], title: str, ylabel: str) -> Figure:
    """Test error of every private model of a study over ε; baselines, and the models without noise, as level lines."""
    private = [model for model in models if model.get("epsilon") is not None and model["error"] is not None]
    names = sort_algorithms(model["name"] for model in private)
    with styled():
        axes = new_axes(title, "ε of a record (smaller: more private)", ylabel)
        handles: list[Any] = []
        for name in names:
            of = sorted((model for model in private if model["name"] == name), key=lambda model: model["epsilon"])
            x, y = (np.array([model[key] for model in of], dtype=float) for key in ("epsilon", "error"))
            said = [f"{model_title(name)} at ε = {e:g}: {measured(error)}" for e, error in zip(x, y, strict=True)]
            handles.append(draw_line(axes, name, looks(names)[name], model_title(name), (x, y), said))
        for model in models:
            if model.get("epsilon") is None and model["error"] is not None:
                trained = model["name"] in names
                colour = looks(names)[model["name"]].colour if trained else _LINES.get(model["name"], "#444444")
                style: dict[str, Any] = {"color": colour, "ls": (0, (3, 2)) if trained else "-", "lw": 1.1}
                text = model_title(model["name"]) + (", no noise" if trained else "")
                axes.axhline(model["error"], gid=f"line:{model['name']}-plain", **style)
                handles.append(Line2D([], [], label=text, **style))
        set_epsilon_axis(axes, pd.Series([model["epsilon"] for model in private], dtype=float))
        axes.set_ylim(bottom=0)
        axes.grid(axis="x", visible=False)
        return set_page(axes, handles, [])
