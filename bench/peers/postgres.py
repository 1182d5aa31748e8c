"""Hand-written tables in PostgreSQL, through psycopg."""
import psycopg

from peer import resident
from tables import TABLES, Table

WORDS = """
CREATE INDEX IF NOT EXISTS messages_say ON messages USING gin (to_tsvector('simple', content));
"""


def database(place):
    """Returns the address of the store's database, and creates it if necessary."""
    server = place["postgres"]
    name = "_".join(place["folder"].split("/")[-2:])
    with psycopg.connect(server, autocommit=True) as session:
        known = "SELECT 1 FROM pg_database WHERE datname = %s"
        if not session.execute(known, (name,)).fetchone():
            session.execute(f'CREATE DATABASE "{name}"')
    return server.rsplit("/", 1)[0] + "/" + name


def size(address):
    """Returns the size of the database without its initial size and the server's log."""
    sql = "SELECT pg_database_size(current_database()) - pg_database_size('template1')"
    with psycopg.connect(address, autocommit=True) as session:
        return session.execute(sql).fetchone()[0]


def version(address):
    with psycopg.connect(address) as session:
        major, minor = divmod(session.info.server_version, 10_000)
    return f"PostgreSQL {major}.{minor}"


class PostgresTable(Table):
    name = "postgres"
    label = "PostgreSQL table"
    needs = ("psycopg", "postgres")
    cannot = {"indexed": Table.cannot["indexed"]}
    notes = {**Table.notes, "memory": "the server's session process, including shared memory"}
    synchronous = "on"
    ranked = """
        WITH asked AS (SELECT to_tsquery('simple', ?) AS words), best AS (
            SELECT id, conversation, role, content, words FROM messages, asked
            WHERE to_tsvector('simple', content) @@ words
            ORDER BY ts_rank(to_tsvector('simple', content), words) DESC LIMIT 20
        )
        SELECT id, conversation, role, ts_headline('simple', content, words) FROM best
    """

    def version(self):
        return f"{version(self.place['postgres'])}, psycopg {psycopg.__version__}"

    def serve(self):
        self.address = database(self.place)
        self.connect()
        key = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        tables = TABLES.format(key=key, time="TIMESTAMPTZ")
        self.session.execute(tables + (WORDS if self.words else ""))
        self.close()

    def connect(self):
        self.tips = {}
        self.session = psycopg.connect(self.address, autocommit=True)
        self.session.execute(f"SET synchronous_commit = {self.synchronous}")

    def close(self):
        self.session.close()

    def run(self, sql, *values):
        done = self.session.execute(sql.replace("?", "%s"), values)
        return done.fetchall() if done.description else []

    def together(self):
        return self.session.transaction()

    def nothing(self):
        self.run("SELECT 1")

    def rest(self):
        self.session.execute("VACUUM FULL")

    def disk(self):
        return size(self.address)

    def memory(self):
        """Returns the memory of the server's session process, including shared memory."""
        return resident(self.session.info.backend_pid)


class PostgresWords(PostgresTable):
    name = "postgres-fts"
    label = "PostgreSQL table with `tsvector`"
    words = True
    cannot = {}
    notes = {**PostgresTable.notes, "search": None}


class PostgresLazy(PostgresTable):
    name = "postgres-lazy"
    label = "PostgreSQL table, `synchronous_commit = off`"
    synchronous = "off"
    durable = False


PEERS = (PostgresTable, PostgresWords, PostgresLazy)
