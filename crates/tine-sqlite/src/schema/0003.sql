-- Format 3: what was learned.

-- Every kind of entry lies together, in the order of its keys.
CREATE TABLE entry (
    project  INTEGER NOT NULL REFERENCES project (no),
    kind     INTEGER NOT NULL,
    key      BLOB NOT NULL,
    text     TEXT NOT NULL,
    PRIMARY KEY (project, kind, key)
) STRICT, WITHOUT ROWID;

-- The bytes of sources, in pieces.
CREATE TABLE piece (
    no       INTEGER PRIMARY KEY,
    project  INTEGER NOT NULL REFERENCES project (no),
    source   BLOB NOT NULL,
    nth      INTEGER NOT NULL,
    bytes    BLOB NOT NULL,
    UNIQUE (project, source, nth)
) STRICT;
