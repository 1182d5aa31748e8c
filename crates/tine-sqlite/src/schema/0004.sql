-- Format 4: shorter look-ups.
--
-- A few bytes of an id or a digest are enough to find a record that has the rest. Eight of an id:
-- its time, and twelve bits of chance; turns of the same time lie together. Four of a digest.

CREATE TABLE turn_id_prefix (
    prefix  BLOB NOT NULL,
    place   INTEGER NOT NULL,
    PRIMARY KEY (prefix, place)
) STRICT, WITHOUT ROWID;

INSERT INTO turn_id_prefix SELECT substr(id, 1, 8), place FROM turn_id ORDER BY 1, 2;
DROP TABLE turn_id;
ALTER TABLE turn_id_prefix RENAME TO turn_id;

-- The order of the shorter numbers is that of the longer ones.
UPDATE turn_hash SET prefix = prefix >> 32;
UPDATE idempotency SET prefix = prefix >> 32;
