"""Tables of a run for the tests of its page, and a reader of the page."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd

from silodp.files import PRIVACY_COLUMNS, TABLE_COLUMNS

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Reads a page, failing on tags that do not nest, and keeps its tags, its table rows and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append({"class": dict(attrs).get("class") or "", "cells": []})
        if tag in ("td", "th"):
            self.rows[-1]["cells"].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1]["cells"][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def results(experiment, M=2, R=25, reading=""):
    points = [(name, e) for name in ("minibatch_sgd", "spider", "fed_spider") for e in (0.75, 18.0)]
    points.append(("minibatch_sgd", np.nan))
    table = pd.DataFrame(points, columns=["algorithm", "epsilon"])
    error = 0.1 + 0.0138 * np.arange(len(table))
    return table.assign(
        experiment=experiment, reading=reading, private=table["epsilon"].notna(), M=M, R=R, N=M, n=170, K=83,
        delta=np.where(table["epsilon"].notna(), 1 / 170**2, np.nan), delivered_epsilon=0.9 * table["epsilon"],
        selection="pooled", evaluation="fresh", stepsize=0.1, clip=[1.0] * 6 + [np.inf], phase_length=np.nan, trials=10,
        diverged=0, train_loss_mean=error, test_error_mean=error, test_error_p05=error / 2, test_error_p95=2 * error,
        seconds=1.5, proven=np.where(table["epsilon"].notna(), True, np.nan),
    )[TABLE_COLUMNS]  # fmt: skip


def privacy(table):
    rows = table[table["private"]]
    return rows.assign(
        claimed_epsilon=rows["epsilon"], accountant="pld", adjacency="replace-one", sampling="fixed size",
        noise_multiplier=3.21, holds=rows["delivered_epsilon"] <= rows["epsilon"],
    )[PRIVACY_COLUMNS]  # fmt: skip
