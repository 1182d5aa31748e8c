"""What the benchmark asks of a system.

A system is served once (`serve`, `stop`) and used by clients (`connect`, `close`), each with an
object of its own in a process of its own. What is done to an older turn is done to what `find`
answers for it, which a program would have at hand.
"""
import os
import pathlib
import re


class Peer:
    name = ""
    label = ""
    # Whether an append is on disk when it is acknowledged. The report shows the syncs counted.
    durable = True
    # Whether it keeps neither versions nor names for what was said before.
    does_less = False
    # Whose prepared stores it works in, if not in its own.
    stores_of = None
    # What has to be there for it: modules of Python and programs.
    needs = ()
    # Rows that this system cannot do, and why.
    cannot = {"nothing": "there is no server", "indexed": "there is no index of words"}
    # Rows in which it does something else than the others, and what.
    notes = {}

    def __init__(self, place):
        self.place = place
        self.folder = pathlib.Path(place["folder"])

    def version(self):
        """What is measured, and which version of it."""
        return ""

    def serve(self):
        """Starts what clients share, making the store where there is none."""

    def stop(self):
        """Ends it, leaving the store as it rests on disk."""

    def connect(self):
        """Becomes a client."""

    def close(self):
        """Is one no longer."""

    def create(self, conversation):
        """Makes a conversation, where that has to be done."""

    def fill(self, conversation, messages):
        """Appends many messages, in the cheapest way there is."""
        raise NotImplementedError

    def append(self, conversation, message):
        raise NotImplementedError

    def find(self, conversation, back):
        """The turn so many before the last."""
        raise NotImplementedError

    def fork(self, conversation, turn, name):
        """Gives a name to a branch that ends with an older turn."""
        raise NotImplementedError

    def edit(self, conversation, turn, text, name):
        """Puts another version beside an older message, under a name where it needs one."""
        raise NotImplementedError

    def path(self, conversation):
        """All (role, text) of a conversation, oldest first."""
        raise NotImplementedError

    def last(self, conversation, turns):
        """The last of them."""
        raise NotImplementedError

    def around(self, conversation, turn, turns):
        """Those around an older turn."""
        raise NotImplementedError

    def search(self, word):
        """Twenty turns that say the word, best first where the system ranks."""
        raise NotImplementedError

    def nothing(self):
        """A question to a server that costs it nothing."""
        raise NotImplementedError

    def rest(self):
        """Makes the store small, where there is a command for that."""

    def disk(self):
        """Bytes that the store takes, without an index of words where that is a file apart."""
        return size_of(self.folder)

    def indexed(self):
        """Bytes with the index of words; None where there is no such index."""

    def memory(self):
        """Bytes in memory of what holds the store."""
        return resident(os.getpid())


def size_of(folder, without=()):
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in without)
    return sum(file.stat().st_blocks * 512 for file in files)


def resident(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024
