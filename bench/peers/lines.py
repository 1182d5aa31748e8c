"""One file of JSON lines per conversation."""
import json
import os

from peer import Peer


class Lines(Peer):
    name = "jsonl"
    label = "JSON Lines"
    does_less = True
    notes = {
        "fork": "copies the lines up to the fork point to a new file",
        "edit": "copies the preceding lines and appends the new one",
        "search": "reads every line, returns the first twenty with the word, not ranked",
    }
    options = os.O_WRONLY | os.O_APPEND | os.O_CREAT

    def serve(self):
        self.folder.mkdir(parents=True, exist_ok=True)

    def connect(self):
        self.files = {}

    def close(self):
        for file in self.files.values():
            os.close(file)

    def file(self, conversation):
        return self.folder / f"{conversation}.jsonl"

    def sync(self, file):
        if self.durable:
            os.fdatasync(file)

    def create(self, conversation):
        self.files[conversation] = os.open(self.file(conversation), self.options)
        self.sync_folder()

    def sync_folder(self):
        folder = os.open(self.folder, os.O_RDONLY)
        self.sync(folder)
        os.close(folder)

    def write(self, conversation, data):
        if conversation not in self.files:
            self.create(conversation)
        os.write(self.files[conversation], data)
        self.sync(self.files[conversation])

    def append(self, conversation, message):
        self.write(conversation, line(message))

    def fill(self, conversation, messages):
        self.write(conversation, b"".join(map(line, messages)))

    def lines(self, conversation):
        return self.file(conversation).read_bytes().splitlines(keepends=True)

    def find(self, conversation, back):
        return len(self.lines(conversation)) - 1 - back

    def fork(self, conversation, turn, name):
        self.write(name, b"".join(self.lines(conversation)[: turn + 1]))

    def edit(self, conversation, turn, text, name):
        self.write(name, b"".join(self.lines(conversation)[:turn]) + line(("user", text)))

    def path(self, conversation):
        return [parse(each) for each in self.lines(conversation)]

    def last(self, conversation, turns):
        with open(self.file(conversation), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - turns * 4096))
            return [parse(each) for each in file.readlines()[-turns:]]

    def around(self, conversation, turn, turns):
        start = turn - turns // 2
        return [parse(each) for each in self.lines(conversation)[start : start + turns]]

    def search(self, word):
        found = []
        for file in sorted(self.folder.glob("*.jsonl")):
            with open(file, "rb") as lines:
                found += [parse(each) for each in lines if word.encode() in each]
            if len(found) >= 20:
                return found[:20]
        return found


class LinesLazy(Lines):
    name = "jsonl-lazy"
    label = "JSON Lines, never synced"
    durable = False


def line(message):
    role, text = message
    return json.dumps({"role": role, "content": text}).encode() + b"\n"


def parse(data):
    record = json.loads(data)
    return record["role"], record["content"]


PEERS = (Lines, LinesLazy)
