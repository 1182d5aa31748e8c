-- Format 1.
--
-- Every table that grows is led by the project, which is the key by which data can be distributed:
-- `BY PROJECT` marks the tables that are partitioned where that was asked for. Handles of
-- conversations and segments carry their project in their upper bits, so that every statement
-- can name it.
--
-- What people wrote is kept as bytes: a text of PostgreSQL cannot hold U+0000.

-- The directory of projects: small, read once by each server, a reference table where data is
-- distributed.
CREATE TABLE project (
    id          text COLLATE "C" PRIMARY KEY,
    no          int4 NOT NULL UNIQUE,
    created_at  int8 NOT NULL
);

-- How many blocks of numbers a project has given out. A conversation begins with one, and takes
-- another when its segments have used it up.
CREATE TABLE counter (
    project  int4 NOT NULL,
    blocks   int8 NOT NULL,
    PRIMARY KEY (project)
) BY PROJECT;

CREATE TABLE conversation (
    project        int4 NOT NULL,
    no             int8 NOT NULL,
    id             text COLLATE "C" NOT NULL,
    root_hash      bytea NOT NULL,
    system_prompt  bytea,
    config         bytea,                 -- canonical JSON; NULL once purged
    title          bytea,
    metadata       bytea NOT NULL,        -- canonical JSON object
    created_at     int8 NOT NULL,
    derived_from   text COLLATE "C",
    derived_turn   bytea,
    visibility     int2 NOT NULL,         -- 0 shown, 1 archived, 2 undone, 3 the project's log
    PRIMARY KEY (project, no),
    UNIQUE (project, id)
) BY PROJECT;

CREATE INDEX conversation_derived ON conversation (project, derived_from)
    WHERE derived_from IS NOT NULL;

CREATE TABLE segment (
    project         int4 NOT NULL,
    no              int8 NOT NULL,
    conversation    int8 NOT NULL,
    parent_segment  int8 NOT NULL,        -- 0 is the root
    parent_index    int4 NOT NULL,
    base_depth      int4 NOT NULL,
    PRIMARY KEY (project, no)
) BY PROJECT;

CREATE INDEX segment_conversation ON segment (project, conversation, no);
CREATE INDEX segment_parent ON segment (project, conversation, parent_segment, parent_index);

-- Large bodies, each stored once in a project.
CREATE TABLE body (
    project  int4 NOT NULL,
    digest   bytea NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (project, digest)
) BY PROJECT;

CREATE TABLE turn (
    project       int4 NOT NULL,
    segment       int8 NOT NULL,
    index         int4 NOT NULL,
    conversation  int8 NOT NULL,
    id            bytea NOT NULL,
    hash          bytea NOT NULL,
    operation     int8 NOT NULL,
    depth         int4 NOT NULL,
    created_at    int8 NOT NULL,
    form          int2 NOT NULL,          -- role, kind of body and status in one number
    body          bytea,                  -- the body, or its digest once purged; NULL if shared
    shared        bytea,                  -- the digest of a body that is stored once
    tool_call_id  bytea,
    metadata      bytea,                  -- canonical JSON object
    origin        bytea,
    PRIMARY KEY (project, segment, index),
    UNIQUE (project, id),
    UNIQUE (project, conversation, hash),
    -- Nobody erases a body while somebody else begins to hold it.
    FOREIGN KEY (project, shared) REFERENCES body (project, digest)
) BY PROJECT;

CREATE INDEX turn_shared ON turn (project, shared) WHERE shared IS NOT NULL;

CREATE TABLE split (
    project        int4 NOT NULL,
    conversation   int8 NOT NULL,
    whole_segment  int8 NOT NULL,
    whole_index    int4 NOT NULL,
    left_segment   int8 NOT NULL,
    left_index     int4 NOT NULL,
    right_segment  int8 NOT NULL,
    right_index    int4 NOT NULL,
    operation      int8 NOT NULL,
    PRIMARY KEY (project, conversation, whole_segment, whole_index)
) BY PROJECT;

CREATE TABLE hidden (
    project       int4 NOT NULL,
    conversation  int8 NOT NULL,
    segment       int8 NOT NULL,
    first         int4 NOT NULL,
    last          int4 NOT NULL,
    operation     int8 NOT NULL,
    hidden_by     int2 NOT NULL,          -- 0 cascade, 1 reparent, 2 undo
    root_segment  int8 NOT NULL,
    root_index    int4 NOT NULL,
    PRIMARY KEY (project, conversation, segment, first, operation)
) BY PROJECT;

CREATE TABLE branch (
    project       int4 NOT NULL,
    conversation  int8 NOT NULL,
    id            bytea NOT NULL,
    name          text COLLATE "C" NOT NULL,
    tip_segment   int8 NOT NULL,          -- 0 is the root
    tip_index     int4 NOT NULL,
    forked_from   bytea,
    created_at    int8 NOT NULL,
    version       int8 NOT NULL,
    PRIMARY KEY (project, conversation, id),
    UNIQUE (project, conversation, name)
) BY PROJECT;

CREATE INDEX branch_id ON branch (project, id);

CREATE TABLE bookmark (
    project       int4 NOT NULL,
    name          text COLLATE "C" NOT NULL,
    conversation  int8 NOT NULL,
    segment       int8 NOT NULL,
    index         int4 NOT NULL,
    created_at    int8 NOT NULL,
    PRIMARY KEY (project, name)
) BY PROJECT;

CREATE INDEX bookmark_conversation ON bookmark (project, conversation, name);

-- That an operation's number is free is what every change of a conversation is compared and set
-- by.
CREATE TABLE operation (
    project       int4 NOT NULL,
    conversation  int8 NOT NULL,
    seq           int8 NOT NULL,
    kind          text NOT NULL,
    actor         text NOT NULL,
    at            int8 NOT NULL,
    detail        bytea NOT NULL,         -- canonical JSON, or its digest once purged
    purged        bool NOT NULL,
    hash          bytea NOT NULL,
    undone        bool NOT NULL,
    key           text COLLATE "C",
    fingerprint   bytea,
    answer        bytea,                  -- canonical JSON
    turns         bytea,                  -- runs of turns that it made: segment, index, count
    PRIMARY KEY (project, conversation, seq)
) BY PROJECT;

CREATE UNIQUE INDEX operation_key ON operation (project, key) WHERE key IS NOT NULL;

CREATE TABLE entry (
    project  int4 NOT NULL,
    kind     int2 NOT NULL,
    key      bytea NOT NULL,
    text     bytea NOT NULL,
    PRIMARY KEY (project, kind, key)
) BY PROJECT;

CREATE TABLE piece (
    project  int4 NOT NULL,
    source   bytea NOT NULL,
    nth      int4 NOT NULL,
    bytes    bytea NOT NULL,
    PRIMARY KEY (project, source, nth)
) BY PROJECT;

-- Operations that have no place in the feed yet, each added by the transaction that it belongs
-- to. Whoever reads the feed numbers what is committed and not numbered: so no number is ever
-- behind one that somebody has seen, and no transaction waits for another to get one.
CREATE TABLE unfed (
    project       int4 NOT NULL,
    conversation  int8 NOT NULL,
    seq           int8 NOT NULL,
    nth           int4 NOT NULL,          -- its place in its transaction
    transaction   xid8 NOT NULL DEFAULT pg_current_xact_id()
) BY PROJECT;

CREATE TABLE feed (
    no            int8 PRIMARY KEY,
    project       int4 NOT NULL,
    conversation  int8 NOT NULL,
    seq           int8 NOT NULL
);

CREATE TABLE feed_end (
    no  int8 NOT NULL
);

INSERT INTO feed_end (no) VALUES (0);

-- Written to when the fate of a commit is in doubt: once this is on a standby, so is all before it.
CREATE TABLE confirmed (
    at  timestamptz NOT NULL
);

INSERT INTO confirmed (at) VALUES (now());

-- The index for searches: the terms that each turn says, and how much a project says.
CREATE TABLE said (
    project  int4 NOT NULL,
    segment  int8 NOT NULL,
    index    int4 NOT NULL,
    length   int4 NOT NULL,
    terms    tsvector NOT NULL,
    PRIMARY KEY (project, segment, index)
) BY PROJECT;

CREATE INDEX said_terms ON said USING gin (terms);

CREATE TABLE said_extent (
    project  int4 NOT NULL,
    turns    int8 NOT NULL,
    terms    int8 NOT NULL,
    PRIMARY KEY (project)
) BY PROJECT;

-- How far the index is along the feed.
CREATE TABLE said_through (
    no    int8 NOT NULL,
    hash  bytea
);

INSERT INTO said_through (no) VALUES (0);

-- Numbers the operations that are committed and have no number, in the order of their
-- transactions; one numbers at a time.
CREATE FUNCTION number_feed() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM feed_end FOR UPDATE;
    WITH gone AS (
        DELETE FROM unfed RETURNING project, conversation, seq, nth, transaction
    ), numbered AS (
        INSERT INTO feed (no, project, conversation, seq)
        SELECT (SELECT no FROM feed_end)
                + row_number() OVER (ORDER BY transaction, nth, conversation, seq),
            project, conversation, seq
        FROM gone RETURNING no
    )
    UPDATE feed_end SET no = greatest(feed_end.no, (SELECT max(numbered.no) FROM numbered));
END $$;

-- An append to a conversation whose state the caller knows: everything in one statement, and so in
-- one round trip. The operation goes first: if its number is taken, the caller knew too little.
CREATE FUNCTION append_turns(
    in_project int4, in_conversation int8,
    in_seq int8, in_kind text, in_actor text, in_at int8, in_detail bytea, in_hash bytea,
    in_key text, in_fingerprint bytea, in_answer bytea, in_turns bytea,
    segment_no int8[], segment_parent int8[], segment_parent_index int4[], segment_depth int4[],
    body_digest bytea[], body_bytes bytea[],
    turn_segment int8[], turn_index int4[], turn_id bytea[], turn_hash bytea[], turn_depth int4[],
    turn_at int8[], turn_form int2[], turn_body bytea[], turn_shared bytea[], turn_call bytea[],
    turn_metadata bytea[], turn_origin bytea[],
    branch_id bytea[], branch_name text[], branch_segment int8[], branch_index int4[],
    branch_forked bytea[], branch_at int8[], branch_version int8[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO operation (project, conversation, seq, kind, actor, at, detail, purged, hash,
        undone, key, fingerprint, answer, turns)
    VALUES (in_project, in_conversation, in_seq, in_kind, in_actor, in_at, in_detail, false,
        in_hash, false, in_key, in_fingerprint, in_answer, in_turns);
    FOR i IN 1 .. cardinality(segment_no) LOOP
        INSERT INTO segment (project, no, conversation, parent_segment, parent_index, base_depth)
        VALUES (in_project, segment_no[i], in_conversation, segment_parent[i],
            segment_parent_index[i], segment_depth[i]);
    END LOOP;
    FOR i IN 1 .. cardinality(body_digest) LOOP
        INSERT INTO body (project, digest, body)
        VALUES (in_project, body_digest[i], body_bytes[i]) ON CONFLICT DO NOTHING;
    END LOOP;
    FOR i IN 1 .. cardinality(turn_segment) LOOP
        INSERT INTO turn (project, segment, index, conversation, id, hash, operation, depth,
            created_at, form, body, shared, tool_call_id, metadata, origin)
        VALUES (in_project, turn_segment[i], turn_index[i], in_conversation, turn_id[i],
            turn_hash[i], in_seq, turn_depth[i], turn_at[i], turn_form[i], turn_body[i],
            turn_shared[i], turn_call[i], turn_metadata[i], turn_origin[i]);
    END LOOP;
    FOR i IN 1 .. cardinality(branch_id) LOOP
        UPDATE branch SET tip_segment = branch_segment[i], tip_index = branch_index[i],
            version = branch_version[i]
        WHERE project = in_project AND conversation = in_conversation AND id = branch_id[i];
        IF NOT FOUND THEN
            INSERT INTO branch (project, conversation, id, name, tip_segment, tip_index,
                forked_from, created_at, version)
            VALUES (in_project, in_conversation, branch_id[i], branch_name[i], branch_segment[i],
                branch_index[i], branch_forked[i], branch_at[i], branch_version[i]);
        END IF;
    END LOOP;
    INSERT INTO unfed (project, conversation, seq, nth)
    VALUES (in_project, in_conversation, in_seq, 1);
END $$;
