-- Format 2: operations and moved branches are written where fresh turns are.
--
-- What was just written lies in one table, in the order in which it came: the operations behind
-- the one that `indexed` names, and, before each of them, turns that it made. All of them move to
-- their places together, with the entries of the look-up tables. A row is a turn or an operation,
-- and the columns of the other are NULL. Its number is the operation's times 2^10, plus 0, 1 and
-- so on for turns, and 1023 for the operation itself.

INSERT INTO turn SELECT place, id, hash, operation, depth, form, created_at, body, tool_call_id,
    metadata, origin FROM fresh ORDER BY place;

DROP TABLE fresh;

CREATE TABLE fresh (
    no            INTEGER PRIMARY KEY,

    place         INTEGER,
    id            BLOB,
    hash          BLOB,                   -- of the turn or of the operation
    operation     INTEGER,
    depth         INTEGER,
    form          INTEGER,
    created_at    INTEGER,
    body          ANY,
    tool_call_id  TEXT,
    metadata      TEXT,
    origin        BLOB,

    conversation  INTEGER,
    seq           INTEGER,
    kind          TEXT,
    actor         TEXT,
    at            INTEGER,
    detail        BLOB,
    undone        INTEGER,
    key           TEXT,
    fingerprint   BLOB,
    answer        BLOB,
    turns         BLOB,
    moves         BLOB                    -- branches that it moved: id, place of the tip, version
) STRICT;

INSERT INTO fresh (no, hash, conversation, seq, kind, actor, at, detail, undone, key, fingerprint,
        answer, turns)
    SELECT no << 10 | 1023, hash, conversation, seq, kind, actor, at, detail, undone, key,
        fingerprint, answer, turns
    FROM operation WHERE no > (SELECT through FROM indexed) ORDER BY no;

DELETE FROM operation WHERE no > (SELECT through FROM indexed);
