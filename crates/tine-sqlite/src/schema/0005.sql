-- Format 5: records in families, and their index keys in a table of their own.

-- The records of a family are contiguous, in order of key.
CREATE TABLE record (
    project  INTEGER NOT NULL REFERENCES project (no),
    family   INTEGER NOT NULL,
    key      BLOB NOT NULL,
    text     TEXT NOT NULL,
    PRIMARY KEY (project, family, key)
) STRICT, WITHOUT ROWID;

-- Derived from the records: the owner of an index key is part of the key.
CREATE TABLE record_index (
    project  INTEGER NOT NULL REFERENCES project (no),
    name     INTEGER NOT NULL,
    key      BLOB NOT NULL,
    PRIMARY KEY (project, name, key)
) STRICT, WITHOUT ROWID;

INSERT INTO record SELECT project, kind, key, text FROM entry
    WHERE kind IN (1, 4, 6, 10, 12, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25) ORDER BY 1, 2, 3;

-- Slots named their entity in the text, queued runs their interpreter; the entities of
-- conversations were kept among the slots.
INSERT OR IGNORE INTO record_index
    SELECT project,
        CASE WHEN kind = 9 AND length(key) = 16 THEN 26 ELSE kind END,
        CASE WHEN kind = 9 AND length(key) = 16 THEN CAST(key || unhex(substr(text, 5)) AS BLOB)
             WHEN kind = 9 THEN CAST(key || x'00' || unhex(substr(text, 5)) AS BLOB)
             WHEN kind = 14 THEN CAST(key || CAST(text AS BLOB) AS BLOB)
             ELSE key END
    FROM entry WHERE kind IN (2, 3, 5, 7, 8, 9, 11, 13, 14, 17) ORDER BY 1, 2, 3;

DROP TABLE entry;
