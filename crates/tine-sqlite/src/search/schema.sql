-- The index for searches, a database of its own. It holds terms and where they stand, and none
-- of the text. Derived: when this page changes, raise FORMAT, and every index is made anew.

-- The terms of a turn, made by our own rules and set apart by spaces, and its labels as digests.
-- The tokenizer only cuts at the spaces: every character beyond ASCII is part of a token to it.
CREATE VIRTUAL TABLE said USING fts5 (
    words, tags, content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- What a turn is filtered and ordered by. Its number is that of its terms: numbers grow, since
-- FTS5 gathers terms in memory only as long as they do, and small steps take little space.
CREATE TABLE entry (
    no            INTEGER PRIMARY KEY,
    place         INTEGER NOT NULL UNIQUE,
    project       INTEGER NOT NULL,
    conversation  INTEGER NOT NULL,
    role          INTEGER NOT NULL,
    at            INTEGER NOT NULL
) STRICT;

CREATE TABLE project (
    no  INTEGER PRIMARY KEY,
    id  TEXT NOT NULL UNIQUE
) STRICT;

-- The last operation that is in the index, 0 for none; and whether terms of erased turns may
-- still lie in it.
CREATE TABLE progress (
    at       INTEGER NOT NULL,
    hash     BLOB,
    unswept  INTEGER NOT NULL
) STRICT;

INSERT INTO progress (at, unswept) VALUES (0, 0);
