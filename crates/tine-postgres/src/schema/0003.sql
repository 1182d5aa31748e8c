-- Format 3: records in families, and their index keys in a table of their own.

CREATE TABLE record (
    project  int4 NOT NULL,
    family   int2 NOT NULL,
    key      bytea NOT NULL,
    text     bytea NOT NULL,
    PRIMARY KEY (project, family, key)
) BY PROJECT;

-- Derived from the records: the owner of an index key is part of the key.
CREATE TABLE record_index (
    project  int4 NOT NULL,
    name     int2 NOT NULL,
    key      bytea NOT NULL,
    PRIMARY KEY (project, name, key)
) BY PROJECT;

INSERT INTO record SELECT project, kind, key, text FROM entry
    WHERE kind IN (1, 4, 6, 10, 12, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25);

-- Slots named their entity in the text, queued runs their interpreter; the entities of
-- conversations were kept among the slots.
INSERT INTO record_index
    SELECT project, kind, CASE WHEN kind = 14 THEN key || text ELSE key END
    FROM entry WHERE kind IN (2, 3, 5, 7, 8, 11, 13, 14, 17);

INSERT INTO record_index
    SELECT project,
        CASE WHEN length(key) = 16 THEN 26 ELSE 9 END,
        key || CASE WHEN length(key) = 16 THEN ''::bytea ELSE '\x00'::bytea END
            || decode(substr(encode(text, 'escape'), 5), 'hex')
    FROM entry WHERE kind = 9 AND encode(text, 'escape') ~ '^ent_[0-9a-f]{32}$';

DROP TABLE entry;
