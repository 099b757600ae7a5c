"""Protocol choices where the papers and the released programs are silent or at odds."""

from typing import Literal

from pydantic import Field

from silodp.config.types import Strict


class Readings(Strict):
    """Choices where papers and released programs are silent or at odds: protocol variants."""

    stepsize_grid: Literal["as_given", "linear"] = Field(
        "as_given", description="spacing of every step size grid; as_given: each grid's own"
    )
    grid: Literal["as_given", "widened"] = Field(
        "as_given", description="widened: step sizes and clips also beyond both ends of every grid"
    )
    spider_q1_noise: Literal["own", "minibatch", "released"] = Field(
        "own",
        description="noise of FedProx-SPIDER at q = 1: its own formula, MB-SGD's, or the released program's, which "
        "lacks max(R/q, 1) (not private as claimed)",
    )
    records: Literal["equal", "own", "rounded"] = Field(
        "equal",
        description="n of unequal silos: the smallest, each silo's, or each silo's rounded down to a power of 1.25",
    )
    server_update: Literal["mean", "sum"] = Field("mean", description="the server averages messages, or adds them up")
    log_term: Literal["paper", "1/delta", "2/delta"] = Field(
        "paper", description="log term of MB-SGD's moments-form noise; paper: the experiment's log_term"
    )
    batch: Literal["eps_max", "per_eps"] = Field("eps_max", description="K from batch_epsilon, or from each epsilon")
    fed_spider_releases: Literal["R", "2R-1"] = Field("R", description="releases that Fed-SPIDER's noise is made for")
    resample: bool = Field(False, description="draw records with replacement before the split: train and test overlap")
    split: Literal["by_record", "per_silo"] = Field(
        "by_record",
        description="a record that several silos hold is on the same side in all, or each silo splits its own records",
    )
    standardise: Literal["train", "all", "silo"] = Field(
        "train", description="records that standardisation and PCA are fitted on; silo: each silo's own (PCA: train)"
    )
    output: Literal["last", "mean_of_last_8", "own"] = Field(
        "last", description="iterate that is evaluated; own: what the paper's algorithm returns"
    )
    sampler: Literal["replacement", "subset"] = Field(
        "replacement", description="a silo's K records of a message: drawn with replacement, or distinct"
    )
    clipping: Literal["record", "per_tensor", "batch_mean"] = Field(
        "record", description="what is clipped; per_tensor and batch_mean are not private as claimed"
    )
    noise: Literal["paper", "calibrated", "favourable"] = Field(
        "paper",
        description="the papers' formulas, or the least that certifies epsilon; favourable: for local SGD "
        "the noise below which its claim is surely false, else as calibrated",
    )
    noise_at: Literal["step", "contracted_step", "end"] = Field(
        "step",
        description="where local SGD adds noise: each step, each step that cannot expand distances, or the end of a "
        "round of such steps (linear and logistic models)",
    )
    summation: Literal["ideal", "shuffled"] = Field(
        "ideal", description="sums of the SDP algorithms: by a trusted party, or by P_vec"
    )
    clip_rule: Literal["grid", "max_norm"] = Field(
        "grid", description="clip thresholds; max_norm: twice the longest training record, not private"
    )


class Alternative(Readings):
    """Readings that are run beside the default ones."""

    algorithms: list[str] | None = Field(
        None, min_length=1, description="algorithms that are run so; default: all that a variant applies to"
    )


# Variants that apply to some algorithms only, which name them in their own files; the others concern all.
OF_SOME = frozenset(
    {"clipping", "fed_spider_releases", "log_term", "noise_at", "sampler", "spider_q1_noise", "summation"}
)

# Variants that change a trained run by nothing but its point and its silos' plans: where both are those of a run of the
# default reading, so is the run.
BY_POINT = frozenset({"grid", "spider_q1_noise", "stepsize_grid"})
