"""The interface of a system under test.

A system is started once (`serve`, `stop`) and used by clients (`connect`, `close`), each with its own
object in its own process. Operations on an older turn take the result of `find`, which a program
would already have.
"""
import os
import pathlib
import re


class Peer:
    name = ""
    label = ""
    # Whether an append is on disk when it is acknowledged. The report shows the syncs counted.
    durable = True
    # Whether it keeps neither versions nor names for earlier messages.
    does_less = False
    # The system whose prepared stores it uses, if not its own.
    stores_of = None
    # Required Python modules and programs.
    needs = ()
    # Rows that this system does not support, with the reason.
    cannot = {"nothing": "no server", "indexed": "no full-text index"}
    # Rows in which its behaviour differs, with a description.
    notes = {}

    def __init__(self, place):
        self.place = place
        self.folder = pathlib.Path(place["folder"])

    def version(self):
        """Returns the name and version."""
        return ""

    def serve(self):
        """Starts what clients share, and creates the store if necessary."""

    def stop(self):
        """Stops it and leaves the store in its final state on disk."""

    def connect(self):
        """Connects as a client."""

    def close(self):
        """Disconnects."""

    def create(self, conversation):
        """Creates a conversation, if the system needs that."""

    def fill(self, conversation, messages):
        """Appends many messages in the cheapest way."""
        raise NotImplementedError

    def append(self, conversation, message):
        raise NotImplementedError

    def find(self, conversation, back):
        """Returns the turn that is `back` turns before the last."""
        raise NotImplementedError

    def fork(self, conversation, turn, name):
        """Creates a named branch that ends with an older turn."""
        raise NotImplementedError

    def edit(self, conversation, turn, text, name):
        """Adds another version of an older message, under a name if necessary."""
        raise NotImplementedError

    def path(self, conversation):
        """Returns all (role, text) of a conversation, oldest first."""
        raise NotImplementedError

    def last(self, conversation, turns):
        """Returns the last messages."""
        raise NotImplementedError

    def around(self, conversation, turn, turns):
        """Returns the messages around an older turn."""
        raise NotImplementedError

    def search(self, word):
        """Returns twenty turns with the word, best first if the system ranks."""
        raise NotImplementedError

    def nothing(self):
        """Sends a request without work to the server."""
        raise NotImplementedError

    def rest(self):
        """Compacts the store, if there is a command for that."""

    def disk(self):
        """Returns the size of the store, without a full-text index in a separate file."""
        return size_of(self.folder)

    def indexed(self):
        """Returns the size with the full-text index; None without one."""

    def memory(self):
        """Returns the memory of the process that serves the store."""
        return resident(os.getpid())


def size_of(folder, without=()):
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in without)
    return sum(file.stat().st_blocks * 512 for file in files)


def resident(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024
