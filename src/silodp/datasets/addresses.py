"""Addresses as messages may show them: without the user, password and token of a private mirror's address."""

import re
from urllib.parse import quote, urlsplit, urlunsplit

# To the next space: a password may hold quotes and brackets.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(\S+)")
# A query without its address, as HTTP libraries put it into their errors.
_QUERY = re.compile(r"\?[^\s=]*=\S*")


def without_credentials(text: str) -> str:
    """`text` with every address in it cut to scheme, host, port and path."""
    return _QUERY.sub("", _ADDRESS.sub(lambda match: match[1] + _bare(match[2]), text))


def below(address: str, file: str) -> str:
    """The address of `file` under a mirror's address; a token in the mirror's query stays behind the path."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{quote(file)}", parts.query, ""))


def _bare(rest: str) -> str:
    """What stands behind the last @ and before a query; a password may hold a slash, a question mark or a hash."""
    return re.split(r"[?#]", rest.rpartition("@")[2], maxsplit=1)[0]
