"""Who may join a cluster: Ray's token, which it reads from the environment and from ~/.ray/auth_token."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from ...formulations.errors import ExecutionError, InvalidInputError


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while: Ray reads its settings from there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def check_token(address: str, *, allow_no_token: bool) -> None:
    """Ask a cluster who may join it."""
    from ray._raylet import AuthenticationTokenLoader

    open_to_all = (
        "takes orders from everybody who reaches it; start it with RAY_AUTH_MODE=token, or say that this is "
        "meant (--allow-no-token)"
    )
    mode = os.environ["RAY_AUTH_MODE"].lower()
    if mode != "token" and not allow_no_token:
        raise InvalidInputError(f"RAY_AUTH_MODE is {mode!r}: such a cluster {open_to_all}")
    if mode == "token" and not AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        raise InvalidInputError(
            "there is no token of the cluster: set RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from its head "
            "(`ray get-auth-token --generate` makes one there)"
        )
    if not _lets_in(address, mode):
        raise ExecutionError(
            f"the cluster at {address} has another token: set RAY_AUTH_TOKEN to the one it was started "
            "with, or copy ~/.ray/auth_token from its head"
        )
    if not allow_no_token and _lets_in(address, "disabled"):
        raise ExecutionError(f"the cluster at {address} {open_to_all}")


def _lets_in(address: str, mode: str) -> bool:
    """Return whether a cluster answers who comes with the token, or without any ("disabled")."""
    from ray._raylet import GcsClient
    from ray.exceptions import AuthenticationError

    try:
        with variables({"RAY_AUTH_MODE": mode}), _silent_stderr():
            forget_token()
            GcsClient(address=address)
    except AuthenticationError:
        return False
    finally:
        forget_token()
    return True


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Throw away what compiled code prints: a refusal that is asked for is no news."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def forget_token() -> None:
    """Have Ray read the token from the environment anew: it keeps what it has read first."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
