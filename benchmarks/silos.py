"""Silos under hostile questions, and under load: the tables of benchmarks/SILOS.md.

`python benchmarks/silos.py` needs requirements/federate.lock. Silos are processes on this machine, on `unix:` sockets.
"""

import argparse
import multiprocessing
import os
import resource
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.stats import mannwhitneyu

from marked import write_between
from silodp.models import MODELS
from silodp.silos.coordinator import RemoteFederation, train
from silodp.silos.federation_file import Federation
from silodp.silos.line import Lines, join
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.secret_draws import SecretDraws
from silodp.silos.silo import Silo
from silodp.silos.wire import FAULT, GREETING, HELLO, MARK, pack

RUN = b"r" * 32
QUESTIONS = 20_000
ROUNDS = 10
# Records that are timed, and how often without and with one that is not finite.
RECORDS, TIMED = 5000, 200
HELLO_BYTES = HELLO.pack(b"n" * 16, b"f" * 32, b"c" * 32, RUN)


def made_plan(silos: int, hidden: int, rounds: int) -> RunPlan:
    """A perceptron of four numbers and a constant with `hidden` units."""
    numbers = [f"x{i}" for i in range(4)]
    columns = dict.fromkeys(numbers, "number") | {"y": {"type": "category", "values": ["a", "b"]}}
    schema = {"target": "y", "columns": columns, "bounds": {name: [-1, 1] for name in numbers}}
    keys = {"title": "load", "schema": schema, "model": {"name": "perceptron", "hidden": hidden}, "bound": 100.0}
    keys |= {"algorithm": {"name": "minibatch_sgd"}, "participants": silos, "clip": 1.0, "batch_records": 10}
    keys |= {"rounds": rounds, "stepsize": 0.5, "reply_after": 0.0, "coordinator": {"address": "unix:/line"}}
    keys["silos"] = {f"silo{i}": {"records": 100, "epsilon": 4.0, "delta": 1e-4} for i in range(silos)}
    return work_out(Federation.model_validate(keys), "federation.yaml")


def made_records(seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(100, 5, generator=generator, dtype=torch.float64) * 2 - 1
    return x, (x[:, 0] > 0).long()


def hostile(plan: RunPlan, generator: np.random.Generator) -> dict[str, Callable[[], bytes]]:
    """Kind of question → one of it; slot 0 was answered before, at other weights."""
    d, slots = plan.size, len(plan.slots[0])

    def changed(value):
        weights = generator.uniform(-1, 1, d)
        weights[generator.integers(d)] = value
        return weights

    def good(slot=1):
        return pack(RUN, slot, generator.uniform(-1, 1, d))

    def flipped(question):
        place = int(generator.integers(32))
        return question[:place] + bytes([question[place] ^ 1]) + question[place + 1 :]

    return {
        "random bytes": lambda: generator.bytes(int(generator.integers(0, 60 + 16 * d))),
        "a bit of the run's digest flipped": lambda: flipped(good()),
        "a slot outside the plan": lambda: good(int(generator.integers(slots, 2**63))),
        "a slot that was answered, at other weights": lambda: good(0),
        "a number cut off": lambda: good()[:-8],
        "two points where the plan has one": lambda: pack(RUN, 1, changed(0.0), changed(0.0)),
        "NaN": lambda: pack(RUN, 1, changed(np.nan)),
        "∞": lambda: pack(RUN, 1, changed(generator.choice([-np.inf, np.inf]))),
        "the next float above B": lambda: pack(RUN, 1, changed(np.nextafter(100.0, 200.0))),
        "1e300": lambda: pack(RUN, 1, changed(1e300)),
    }


def serve(folder: Path, address: str, number: int, silos: int, hidden: int, rounds: int, told) -> None:
    """One silo's process; `told` gets its number, largest memory in MB, bytes that it sent, slots that it opened."""
    torch.set_num_threads(1)
    plan = made_plan(silos, hidden, rounds)
    folder.mkdir(parents=True)
    silo, sent = Silo(plan, number, made_records(number), folder, RUN, os.urandom(32)), []

    def reply(question: bytes) -> bytes:
        answer = silo.reply(question)
        sent.append(len(answer))
        return answer

    join(address, f"silo{number}", None, plan.size, lambda greeting: HELLO_BYTES, reply, 120, 120)
    told.put((number, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, sum(sent), len(silo.store.digests)))


def opened(folder: Path, silos: int, hidden: int, rounds: int):
    """(plan, lines, processes, queue of what silos tell) once all silos are there."""
    plan, address = made_plan(silos, hidden, rounds), f"unix:{folder}/line"
    names = {number: f"silo{number}" for number in range(silos)}
    lines = Lines(address, names, b"", b"", plan.size, lambda silo: bytes(GREETING.size), lambda *_: True)
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    words = [(folder / str(i), address, i, silos, hidden, rounds, told) for i in range(silos)]
    children = [spawn.Process(target=serve, args=one) for one in words]
    for child in children:
        child.start()
    assert len(lines.wait(silos, 300)) == silos
    return plan, lines, children, told


def ask_hostile() -> Iterator[str]:
    generator = np.random.default_rng(60)
    with tempfile.TemporaryDirectory() as name:
        plan, lines, (child,), told = opened(Path(name), 1, 4, 4)
        first = lines.ask(0, pack(RUN, 0, np.zeros(plan.size)), 10)
        assert first != FAULT
        left = len(first)
        kinds = hostile(plan, generator)
        for kind, make in kinds.items():
            replies = [lines.ask(0, make(), 10) for _ in range(QUESTIONS // len(kinds))]
            left += sum(map(len, replies))
            faults = sum(reply == FAULT for reply in replies)
            yield f"| {kind} | {len(replies):,} | {faults:,} | {sum(map(len, replies)) // len(replies)} |"
        good = [lines.ask(0, pack(RUN, slot, np.zeros(plan.size)), 10) for slot in (1, 2, 3)]
        assert all(reply != FAULT for reply in good)
        left += sum(map(len, good))
        lines.end({0: bytes(32)})
        child.join(30)
        _, _, sent, slots = told.get(timeout=10)
        assert sent == left
        yield f"| then the plan's other three slots | 3 | 0 | {len(good[0])} |"
        yield ""
        head = struct.calcsize("<32sQ")
        yield f"Slots that were opened: {slots} of 4. {sent + HELLO.size:,} bytes left the silo: {HELLO.size} of hello"
        yield "(nonce 16, SHA-256 of the federation's file 32, code 32, run 32),"
        yield f"{4 * head} of replies' run and slot, {4 * 8 * plan.size} of numbers with noise, and"
        yield f"{QUESTIONS * 24:,} of the constant. gRPC's headers come on top, and in front of each reply of"
        yield f"`silodp silo join` {MARK.size} bytes, the mark of the ledger."


def load() -> Iterator[str]:
    for hidden in (500, 10_300):
        for silos in (3, 10, 30):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                plan, lines, children, told = opened(folder, silos, hidden, ROUNDS)
                (folder / "coordinator").mkdir()
                ends = []
                runs = dict.fromkeys(range(silos), RUN)
                ask = lambda silo, question, lines=lines: lines.ask(silo, question, 120)  # noqa: E731
                federation = RemoteFederation(plan, runs, ask, folder / "coordinator", 0)
                began = time.monotonic()
                train(federation, lambda r, ends=ends: ends.append(time.monotonic()))
                seconds = np.median(np.diff([began, *ends]))
                lines.end(dict.fromkeys(range(silos), bytes(32)))
                for child in children:
                    child.join(60)
                memory = np.median([told.get(timeout=10)[1] for _ in children])
            yield f"| {plan.size:,} | {silos} | {seconds:.3f} | {memory:.0f} | {2 * 8 * plan.size * silos:,} |"


def parts() -> str:
    """Seconds of a reply and of its noise, in one process."""
    plan, took = made_plan(1, 10_300, ROUNDS), []
    with tempfile.TemporaryDirectory() as name:
        silo = Silo(plan, 0, made_records(), Path(name), RUN, os.urandom(32))
        for slot in range(ROUNDS):
            began = time.monotonic()
            silo.reply(pack(RUN, slot, np.zeros(plan.size)))
            took.append(time.monotonic() - began)
    began = time.monotonic()
    SecretDraws(os.urandom(32)).rounded_gaussian(plan.size, 1 << 20)
    noise = time.monotonic() - began
    return (
        f"A reply at d = {plan.size:,} by itself takes {np.median(took):.3f} s, of which its exact noise {noise:.3f} s."
    )


def times() -> Iterator[str]:
    """Milliseconds of what a silo makes of its records, without and with one that is not finite."""
    generator, one = torch.Generator().manual_seed(0), torch.ones(1, dtype=torch.float64)
    x = torch.rand(RECORDS, 20, generator=generator, dtype=torch.float64) * 2 - 1
    odd = x.clone()
    odd[RECORDS // 2] = torch.inf
    for name, options in (("linear", {}), ("logistic", {}), ("softmax", {}), ("perceptron", {"hidden": 8})):
        model = MODELS[name](20, 2, **options).hiding_time()
        y = (x[:, 0] > 0).long() if name in ("softmax", "perceptron") else (x[:, 0] > 0).double()
        weights = torch.randn(1, model.size, generator=generator, dtype=torch.float64)
        work = {"a sum": lambda part, y=y, w=weights, m=model: m.clipped_gradient_sum(w, part, y, one)}
        if model.curvature:
            ends = one, 0.1 * one, 0 * one, None
            steps = lambda part, y=y, w=weights, m=model, e=ends: m.local_steps(w, part, y, *e, contracted=True)  # noqa: E731
            work["local steps"] = steps
        for what, do in work.items():
            took: dict[bool, list[float]] = {False: [], True: []}
            # In random order, so that the machine's other work falls on both.
            for is_odd in np.random.default_rng(0).permutation([False, True] * (TIMED + 5)):
                began = time.perf_counter()
                do(odd if is_odd else x)
                took[bool(is_odd)].append(1e3 * (time.perf_counter() - began))
            without, with_it = (np.array(took[key][5:]) for key in (False, True))
            p = mannwhitneyu(without, with_it).pvalue
            cells = f"{np.median(without):.2f} | {np.median(with_it):.2f} | {p:.2g} | {'yes' if p < 1e-4 else 'no'}"
            yield f"| {name} | {what} | {cells} |"


def main() -> None:
    """Write the tables between their marks in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/SILOS.md"))
    output = parser.parse_args().output
    head = ["| question | asked | the constant fault | bytes of a reply |", "| --- | --- | --- | --- |"]
    rows = [*head, *ask_hostile()]
    write_between(
        output, "<!-- hostile: written by benchmarks/silos.py -->", "<!-- end of hostile -->", "\n".join(rows)
    )
    head = [f"{RECORDS:,} records of 20 numbers, {TIMED} times each; told apart: p < 10⁻⁴ (Mann-Whitney).", ""]
    head += ["| model | work | ms without | ms with | p | told apart |", "| --- | --- | --- | --- | --- | --- |"]
    text = "\n".join([*head, *times()])
    write_between(output, "<!-- times: written by benchmarks/silos.py -->", "<!-- end of times -->", text)
    head = [f"{ROUNDS} rounds, {os.cpu_count()} cores, medians.", ""]
    head += ["| d | silos | seconds a round | MB a silo | bytes a round |", "| --- | --- | --- | --- | --- |"]
    rows = [*head, *load(), "", parts()]
    write_between(output, "<!-- load: written by benchmarks/silos.py -->", "<!-- end of load -->", "\n".join(rows))


if __name__ == "__main__":
    main()
