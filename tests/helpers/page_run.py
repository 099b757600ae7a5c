"""Tables of a run for the tests of its page, and a reader of the page."""

import base64
import gzip
from html.parser import HTMLParser

import numpy as np
import pandas as pd
from example_table import filled

from silodp.experiments.columns import PRIVACY_COLUMNS

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Reads a page, failing on tags that do not nest; keeps its tags, rows and text, packed ones too, and pictures."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.text, self.packed = [], [], [], "", []
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
        if self.open and self.open[-1] == "script" and self.tags[-1][1] == {"type": "text/plain"}:
            text = gzip.decompress(base64.b64decode(data)).decode()
            if text.startswith("<svg"):
                self.packed.append(text)
                return
            inner = Page(text)
            self.tags += inner.tags
            self.rows += inner.rows
            self.packed += inner.packed
            self.text += inner.text
            return
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1]["cells"][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def results(experiment, M=2, R=25, reading=""):
    points = [(name, e) for name in ("minibatch_sgd", "spider", "fed_spider") for e in (0.75, 18.0)]
    table = pd.DataFrame([*points, ("minibatch_sgd", np.nan)], columns=["algorithm", "epsilon"])
    error, private = 0.1 + 0.0138 * np.arange(len(table)), table["epsilon"].notna()
    names = {"experiment": experiment, "reading": reading, "M": M, "R": R, "N": M, "train_loss_mean": error}
    names |= {"delta": np.where(private, 1 / 170**2, np.nan), "proven": np.where(private, True, np.nan)}
    return filled(table, error, error / 2, 2 * error, **names, clip=[1.0] * 6 + [np.inf])


def privacy(table):
    rows = table[table["private"]]
    fixed = {"accountant": "pld", "adjacency": "replace-one", "sampling": "fixed size", "noise_multiplier": 3.21}
    holds = rows["delivered_epsilon"] <= rows["epsilon"]
    columns = [*PRIVACY_COLUMNS, *(name for name in ("delivered_lower",) if name in rows)]
    return rows.assign(**fixed, claimed_epsilon=rows["epsilon"], holds=holds)[columns]
