"""Hand-written tables in SQLite, through Python's own module."""
import contextlib
import sqlite3

from tables import TABLES, Table

WORDS = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    content, content = 'messages', content_rowid = 'id'
);
CREATE TRIGGER IF NOT EXISTS indexed AFTER INSERT ON messages BEGIN
    INSERT INTO words (rowid, content) VALUES (new.id, new.content);
END;
"""


class SqliteTable(Table):
    name = "sqlite"
    label = "SQLite table"
    synchronous = "FULL"
    ranked = (
        "SELECT messages.id, conversation, role, snippet(words, 0, '[', ']', '…', 20) "
        "FROM words JOIN messages ON messages.id = words.rowid "
        "WHERE words MATCH ? ORDER BY rank LIMIT 20"
    )

    def version(self):
        return f"SQLite {sqlite3.sqlite_version}"

    def serve(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.connect()
        tables = TABLES.format(key="INTEGER PRIMARY KEY", time="TEXT")
        self.database.executescript(tables + (WORDS if self.words else ""))
        self.close()

    def connect(self):
        self.tips = {}
        file = self.folder / "messages.db"
        self.database = sqlite3.connect(file, timeout=60, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute(f"PRAGMA synchronous = {self.synchronous}")

    def close(self):
        self.database.close()

    def run(self, sql, *values):
        return self.database.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def together(self):
        self.database.execute("BEGIN IMMEDIATE")
        yield
        self.database.execute("COMMIT")

    def rest(self):
        self.database.execute("VACUUM")


class SqliteWords(SqliteTable):
    name = "sqlite-fts"
    label = "SQLite table with FTS5"
    words = True
    cannot = {"nothing": SqliteTable.cannot["nothing"]}
    notes = {**SqliteTable.notes, "search": None}


class SqliteNormal(SqliteTable):
    name = "sqlite-normal"
    label = "SQLite table, `synchronous = NORMAL`"
    synchronous = "NORMAL"
    durable = False


PEERS = (SqliteTable, SqliteWords, SqliteNormal)
