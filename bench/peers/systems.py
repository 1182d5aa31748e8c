"""The list of systems."""
import contextlib
import importlib
import importlib.util
import pathlib
import shutil

MODULES = ("tine", "checkpoints", "repository", "sqlite", "postgres", "lines")


def all_installed():
    """Returns the systems whose requirements are installed."""
    return [peer for peer in each() if all(map(is_there, peer.needs))]


def each():
    for module in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            yield from importlib.import_module(module).PEERS


def is_there(need):
    if need == "postgres":
        return any(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if shutil.which(need):
        return True
    try:
        return importlib.util.find_spec(need) is not None
    except ModuleNotFoundError:
        return False


def find(name):
    """Imports and returns the system that `name_of` names; imports no other."""
    module, peer = name.split(".")
    return getattr(importlib.import_module(module), peer)


def name_of(peer):
    return f"{peer.__module__}.{peer.__name__}"
