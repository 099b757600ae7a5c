"""The command `silo`: a key, a check, a part in a run, a budget."""

import textwrap
from pathlib import Path

import click

from silodp.cli.options import PATH, POSITIVE, command
from silodp.config.errors import ConfigError
from silodp.silos.keys import fingerprint, make_key, spoken


@command(epilog="Example: silodp silo join silo.yaml")
@click.argument("action", type=click.Choice(("key", "check", "join", "budget")))
@click.argument("name", metavar="NAME|FILE", type=PATH)
@click.option("--again", is_flag=True, help="Of `join`: start and charge another run of the same federation.")
@click.option("--raise", "epsilon", type=POSITIVE, help="Of `budget`: the new largest total epsilon.")
@click.option("--socket", hidden=True, help="Socket of a coordinator on this machine.")
def silo(action: str, name: Path, again: bool, epsilon: float | None, socket: str | None) -> None:
    """Make a key, check what a run would cost, take part in one, or raise the budget.

    `key` takes a NAME, the others a silo.yaml.
    """
    if (epsilon is not None) != (action == "budget"):
        raise ConfigError("command line: --raise: must be given with budget, and with nothing else")
    if action == "key":
        certificate = make_key(Path(f"{name}.key"))
        print(f"{name}.key: private; {name}.crt: for all. Compare with the others by telephone:")
        print(spoken(fingerprint(certificate)))
        print("the party's lines in federation.yaml:")
        indent = " " * (2 if name.name == "coordinator" else 4)
        print(f"{indent}certificate: |")
        print(textwrap.indent(certificate, f"{indent}  "), end="")
        return
    # Loads PyTorch, which a key does not need.
    from silodp.cli import federate

    if action == "budget":
        federate.raise_budget(name, epsilon or 0.0)
    else:
        federate.take_part(name, socket, again, is_check=action == "check")
