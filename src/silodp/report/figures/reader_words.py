"""What readers meet in place of keys: titles of experiments, variants, algorithms and parameters in words."""

import functools
import re
from collections.abc import Mapping

from silodp.algorithms import ALGORITHMS
from silodp.config.loading import known_shorts, known_titles
from silodp.config.readings import Readings
from silodp.report.figures.style import short_label
from silodp.verdicts.checks import CHECKS

# Choice of a variant → words; also of what a report does with the same runs.
VARIANTS = {
    "stepsize_grid=as_given": "step sizes spaced as each grid says",
    "stepsize_grid=linear": "linear grid of step sizes",
    "grid=as_given": "each grid as given",
    "grid=widened": "grids widened beyond both ends",
    "spider_q1_noise=own": "SPIDER's own noise at q = 1",
    "spider_q1_noise=minibatch": "SPIDER at q = 1 with MB-SGD's noise",
    "spider_q1_noise=released": "SPIDER at q = 1 with the released program's noise",
    "records=equal": "n of the smallest silo for all",
    "records=own": "each silo with its own n",
    "records=rounded": "each silo with its own n, rounded down",
    "server_update=mean": "server averages messages",
    "server_update=sum": "server adds messages up",
    "log_term=paper": "the paper's log term in the noise",
    "log_term=1/delta": "log(1/δ) in the noise",
    "log_term=2/delta": "log(2/δ) in the noise",
    "batch=eps_max": "one K for all ε",
    "batch=per_eps": "K for each ε",
    "fed_spider_releases=R": "Fed-SPIDER's noise for R releases",
    "fed_spider_releases=2R-1": "Fed-SPIDER's noise for 2R − 1 releases",
    "resample=true": "records drawn with replacement before the split",
    "resample=false": "each record in one part",
    "split=by_record": "a record on one side in all silos",
    "split=per_silo": "each silo splits its own records",
    "standardise=train": "standardised on training records",
    "standardise=all": "standardised on all records",
    "standardise=silo": "standardised by each silo",
    "output=last": "last iterate",
    "output=mean_of_last_8": "mean of the last 8 iterates",
    "output=own": "what each paper's algorithm returns",
    "sampler=replacement": "batches drawn with replacement",
    "sampler=subset": "batches of distinct records",
    "clipping=record": "each record's gradient clipped",
    "clipping=per_tensor": "each tensor clipped by itself",
    "clipping=batch_mean": "only the batch mean clipped",
    "noise=paper": "noise by the papers' formulas",
    "noise=calibrated": "calibrated noise",
    "noise=favourable": "the least noise that no proof rules out",
    "noise=moments": "noise in its moments form",
    "noise_at=step": "noise in each local step",
    "noise_at=contracted_step": "noise in each contracted local step",
    "noise_at=end": "noise at the end of a round",
    "summation=ideal": "ideal sums",
    "summation=shuffled": "sums by P_vec",
    "clip_rule=grid": "clip from a grid",
    "clip_rule=max_norm": "clip at twice the longest record",
    "selection=pooled": "one point for all trials",
    "selection=per_trial": "a point for each trial",
    "evaluation=fresh": "errors of new runs at the point",
    "evaluation=same": "errors of the runs that chose the point",
}
_DATA_SETS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "wbcd": "breast cancer"}
_DATA_SET = re.compile(rf"\b({'|'.join(_DATA_SETS)})\b")
_SIGNS = {"epsilon0": "ε0", "epsilon": "ε", "sigma": "σ", "beta": "β", "delta": "δ", "kappa": "κ", "upsilon": "υ*"}
_SIGNS["l1"] = "ℓ1"
_SIGN = re.compile(rf"\b({'|'.join(_SIGNS)})\b")
_CHOICE = rf"\b(?:{'|'.join([*Readings.model_fields, 'selection', 'evaluation'])})=[\w/-]+"
_VARIANT = re.compile(rf"{_CHOICE}(?:;{_CHOICE})*")
_ALGORITHM = rf"\b(?:{'|'.join(sorted([*ALGORITHMS, 'spider'], key=len, reverse=True))})\b"
_NAMED = re.compile(rf"({_ALGORITHM})(:non_private)?")
_MINUS = re.compile(r"(?<![\w.−-])-(?=\.?\d)")


def title_of(experiment: str, titles: Mapping[str, str] | None = None) -> str:
    """An experiment's title: as `titles` has it, else as config/experiments has it, else its name."""
    return (titles or {}).get(experiment) or known_titles().get(experiment) or experiment


def short_title(experiment: str, short: str = "", title: str = "") -> str:
    """What figures call an experiment: `short` as its run has it, else that of config/experiments, else its title."""
    return short or known_shorts().get(experiment) or title or experiment


def setting_words(M: object, R: object) -> str:
    return f"M = {M}, R = {R}"


def variant_words(reading: str) -> str:
    """A variant's label, as in "clip_rule=max_norm;evaluation=same", in words; empty for the default."""
    return ", ".join(VARIANTS.get(part, part) for part in str(reading).split(";")) if reading else ""


def in_signs(parameter: str) -> str:
    """A parameter's name with Greek letters: "epsilon (hinge)" is "ε (hinge)"."""
    return _SIGN.sub(lambda name: _SIGNS[name[1]], parameter)


def readable_text(text: str, titles: Mapping[str, str] | None = None) -> str:
    """Keys of experiments, data sets, algorithms, variants and checks in a sentence, as readers call them."""
    known = {**known_titles(), **(titles or {})}

    def titled(key: re.Match[str]) -> str:
        # A title has commas of its own: inside a sentence it stands in quotation marks.
        name = f"“{known[key[1]]}”" if key.start() else known[key[1]]
        return name + (f", {setting_words(key[2], key[3])}" if key[2] else "") + (":" if key[4] else "")

    text = _experiment(tuple(sorted(known, key=len, reverse=True))).sub(titled, text)
    text = _DATA_SET.sub(lambda name: _DATA_SETS[name[1]], text)
    text = re.sub(r"\bcheck (\w+)", lambda check: CHECKS.get(check[1], check[0]), text)
    text = _VARIANT.sub(lambda variant: variant_words(variant[0]), text)
    text = _NAMED.sub(lambda name: short_label(name[1], private=not name[2]), text)
    return _MINUS.sub("−", in_signs(text))


@functools.cache
def _experiment(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(map(re.escape, names))})\b(?: M=(\d+) R=(\d+))?(?=( {_ALGORITHM})?)")
