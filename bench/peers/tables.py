"""Typical hand-written tables: each message refers to the previous one."""
import datetime

from peer import Peer

TABLES = """
CREATE TABLE IF NOT EXISTS messages (
    id {key},
    conversation TEXT NOT NULL,
    parent BIGINT REFERENCES messages (id),
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at {time} NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of ON messages (conversation);
CREATE TABLE IF NOT EXISTS branches (
    conversation TEXT NOT NULL,
    name TEXT NOT NULL,
    tip BIGINT REFERENCES messages (id),
    PRIMARY KEY (conversation, name)
);
"""
INSERT = (
    "INSERT INTO messages (conversation, parent, role, content, created_at) "
    "VALUES (?, ?, ?, ?, ?) RETURNING id"
)
BRANCH = "INSERT INTO branches (conversation, name, tip) VALUES (?, ?, ?)"
TIP = "SELECT max(id) FROM messages WHERE conversation = ?"
LINE = """
WITH RECURSIVE line (id, parent, back) AS (
    SELECT id, parent, 0 FROM messages WHERE id = ?
    UNION ALL
    SELECT messages.id, messages.parent, line.back + 1
    FROM line JOIN messages ON messages.id = line.parent WHERE line.back < ?
)
"""
FIND = LINE + "SELECT id, parent, back FROM line ORDER BY back DESC LIMIT 1"
READ = LINE + (
    "SELECT role, content FROM line JOIN messages USING (id) WHERE back >= ? ORDER BY back DESC"
)
LOOK = (
    "SELECT id, conversation, role, content FROM messages WHERE content LIKE ? "
    "ORDER BY id DESC LIMIT 20"
)
EVER = 1 << 30


class Table(Peer):
    does_less = True
    # Whether there is a full-text index.
    words = False
    # The query for the index, best match first.
    ranked = ""
    notes = {
        "search": "`LIKE` over all rows, newest first, not ranked",
        "fork": "inserts a row into a table of branches",
        "edit": "inserts a row with the same parent",
    }

    def run(self, sql, *values):
        """Returns the rows of a statement."""
        raise NotImplementedError

    def together(self):
        """Returns a context manager for a transaction."""
        raise NotImplementedError

    def tip(self, conversation):
        if conversation not in self.tips:
            self.tips[conversation] = self.run(TIP, conversation)[0][0]
        return self.tips[conversation]

    def insert(self, conversation, parent, message):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        return self.run(INSERT, conversation, parent, *message, now)[0][0]

    def append(self, conversation, message):
        self.tips[conversation] = self.insert(conversation, self.tip(conversation), message)

    def fill(self, conversation, messages):
        with self.together():
            for message in messages:
                self.append(conversation, message)

    def find(self, conversation, back):
        return self.run(FIND, self.tip(conversation), back)[0]

    def fork(self, conversation, turn, name):
        self.run(BRANCH, conversation, name, turn[0])

    def edit(self, conversation, turn, text, name):
        self.insert(conversation, turn[1], ("user", text))

    def path(self, conversation):
        return self.run(READ, self.tip(conversation), EVER, 0)

    def last(self, conversation, turns):
        return self.run(READ, self.tip(conversation), turns - 1, 0)

    def around(self, conversation, turn, turns):
        oldest, newest = turn[2] + turns // 2, turn[2] - turns // 2 + 1
        return self.run(READ, self.tip(conversation), oldest, newest)

    def search(self, word):
        if self.words:
            return self.run(self.ranked, word)
        return self.run(LOOK, f"%{word}%")

    def indexed(self):
        return self.disk() if self.words else None
