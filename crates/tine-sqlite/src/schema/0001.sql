-- Format 1.
--
-- A turn's place is its segment's number times 2^20 plus its index, so that the table is
-- clustered by path: reading a run of turns is one range scan.

CREATE TABLE project (
    no          INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE conversation (
    no             INTEGER PRIMARY KEY,
    project        INTEGER NOT NULL REFERENCES project (no),
    id             TEXT NOT NULL,
    root_hash      BLOB NOT NULL,
    system_prompt  TEXT,
    config         TEXT,                  -- canonical JSON; NULL once purged
    title          TEXT,
    metadata       TEXT NOT NULL,         -- canonical JSON object
    created_at     INTEGER NOT NULL,
    derived_from   TEXT,
    derived_turn   BLOB,
    visibility     INTEGER NOT NULL,      -- 0 shown, 1 archived, 2 undone
    UNIQUE (project, id)
) STRICT;

CREATE INDEX conversation_derived ON conversation (project, derived_from)
    WHERE derived_from IS NOT NULL;

CREATE TABLE segment (
    no            INTEGER PRIMARY KEY,
    conversation  INTEGER NOT NULL REFERENCES conversation (no),
    parent        INTEGER NOT NULL,       -- place of the raw parent; 0 is the root
    base_depth    INTEGER NOT NULL
) STRICT;

CREATE INDEX segment_parent ON segment (conversation, parent);

CREATE TABLE turn (
    place         INTEGER PRIMARY KEY,
    id            BLOB NOT NULL,
    hash          BLOB NOT NULL,
    operation     INTEGER NOT NULL,
    depth         INTEGER NOT NULL,
    form          INTEGER NOT NULL,       -- role, kind of body and status in one number
    created_at    INTEGER,                -- NULL when it is the time in the id
    body          ANY,                    -- text, number of a shared body, or digest once purged
    tool_call_id  TEXT,
    metadata      TEXT,                   -- canonical JSON object
    origin        BLOB
) STRICT;

-- Turns on their way to their places, in the order in which they came. They move together with
-- the entries of the look-up tables.
CREATE TABLE fresh (
    no            INTEGER PRIMARY KEY,
    place         INTEGER NOT NULL,
    id            BLOB NOT NULL,
    hash          BLOB NOT NULL,
    operation     INTEGER NOT NULL,
    depth         INTEGER NOT NULL,
    form          INTEGER NOT NULL,
    created_at    INTEGER,
    body          ANY,
    tool_call_id  TEXT,
    metadata      TEXT,
    origin        BLOB
) STRICT;

-- Runs of older turns, sealed and compressed together: so many places from the first on.
CREATE TABLE chunk (
    first  INTEGER PRIMARY KEY,
    turns  INTEGER NOT NULL,
    data   BLOB NOT NULL
) STRICT;

-- Ids are unique in a project; the same conversation may have been imported into several.
CREATE TABLE turn_id (
    id     BLOB NOT NULL,
    place  INTEGER NOT NULL,
    PRIMARY KEY (id, place)
) STRICT, WITHOUT ROWID;

-- The first eight bytes of the hash are enough to find it; the turn has the rest.
CREATE TABLE turn_hash (
    conversation  INTEGER NOT NULL,
    prefix        INTEGER NOT NULL,
    place         INTEGER NOT NULL,
    PRIMARY KEY (conversation, prefix, place)
) STRICT, WITHOUT ROWID;

-- Large bodies, each stored once.
CREATE TABLE shared_body (
    no      INTEGER PRIMARY KEY,
    digest  BLOB NOT NULL UNIQUE,
    body    TEXT NOT NULL
) STRICT;

CREATE TABLE shared_body_holder (
    body   INTEGER NOT NULL REFERENCES shared_body (no),
    place  INTEGER NOT NULL,
    PRIMARY KEY (body, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE split (
    conversation  INTEGER NOT NULL,
    whole         INTEGER NOT NULL,
    left_half     INTEGER NOT NULL,
    right_half    INTEGER NOT NULL,
    operation     INTEGER NOT NULL,
    PRIMARY KEY (conversation, whole)
) STRICT, WITHOUT ROWID;

CREATE TABLE hidden (
    conversation  INTEGER NOT NULL,
    segment       INTEGER NOT NULL,
    first         INTEGER NOT NULL,
    last          INTEGER NOT NULL,
    operation     INTEGER NOT NULL,
    hidden_by     INTEGER NOT NULL,       -- 0 cascade, 1 reparent, 2 undo
    root          INTEGER NOT NULL,
    PRIMARY KEY (conversation, segment, first, operation)
) STRICT, WITHOUT ROWID;

CREATE TABLE branch (
    conversation  INTEGER NOT NULL,
    name          TEXT NOT NULL,
    id            BLOB NOT NULL,
    tip           INTEGER NOT NULL,       -- place; 0 is the root
    forked_from   BLOB,
    created_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX branch_id ON branch (id);

CREATE TABLE bookmark (
    project       INTEGER NOT NULL,
    name          TEXT NOT NULL,
    conversation  INTEGER NOT NULL,
    place         INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX bookmark_conversation ON bookmark (conversation, name);

-- In the order in which operations were committed: the change feed.
CREATE TABLE operation (
    no             INTEGER PRIMARY KEY,
    conversation   INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    actor          TEXT NOT NULL,
    at             INTEGER NOT NULL,
    detail         BLOB NOT NULL,         -- 1 and compact JSON, or 0 and its digest once purged
    hash           BLOB NOT NULL,
    undone         INTEGER NOT NULL,
    key            TEXT,
    fingerprint    BLOB,
    answer         BLOB,                  -- compact JSON
    turns          BLOB                   -- runs of turns that it made: place, count, fresh number
) STRICT;

-- The four tables by which turns and operations are looked up are filled in batches. They are
-- complete up to this operation; what lies behind it is read from the operations themselves.
CREATE TABLE indexed (
    through  INTEGER NOT NULL
) STRICT;

INSERT INTO indexed (through) VALUES (0);

CREATE TABLE operation_seq (
    conversation  INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    operation     INTEGER NOT NULL,
    PRIMARY KEY (conversation, seq)
) STRICT, WITHOUT ROWID;

-- The first eight bytes of the key's digest are enough to find it; the operation has the key.
CREATE TABLE idempotency (
    project    INTEGER NOT NULL,
    prefix     INTEGER NOT NULL,
    operation  INTEGER NOT NULL,
    PRIMARY KEY (project, prefix, operation)
) STRICT, WITHOUT ROWID;
