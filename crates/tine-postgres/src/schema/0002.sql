-- Format 2: appends to several conversations travel together.

DROP FUNCTION append_turns;

-- Appends to conversations of one project whose states the caller knows: everything in one call,
-- and so in one round trip and one commit. If an operation's number is taken, the caller knew too
-- little, and nothing is stored of any of them.
--
-- How many rows there are is nothing that the planner can guess from the values, so that it plans
-- each statement once and not again and again.
CREATE FUNCTION append_all(
    in_project int4,
    operation_conversation int8[], operation_seq int8[], operation_kind text[],
    operation_actor text[], operation_at int8[], operation_detail bytea[], operation_hash bytea[],
    operation_key text[], operation_fingerprint bytea[], operation_answer bytea[],
    operation_turns bytea[],
    segment_conversation int8[], segment_no int8[], segment_parent int8[],
    segment_parent_index int4[], segment_depth int4[],
    body_digest bytea[], body_bytes bytea[],
    turn_conversation int8[], turn_operation int8[], turn_segment int8[], turn_index int4[],
    turn_id bytea[], turn_hash bytea[], turn_depth int4[], turn_at int8[], turn_form int2[],
    turn_body bytea[], turn_shared bytea[], turn_call bytea[], turn_metadata bytea[],
    turn_origin bytea[],
    branch_conversation int8[], branch_id bytea[], branch_name text[], branch_segment int8[],
    branch_index int4[], branch_forked bytea[], branch_at int8[], branch_version int8[]
) RETURNS void LANGUAGE plpgsql
-- Whoever is held up by somebody else's transaction goes alone, and holds nobody else up.
SET lock_timeout = '500ms' AS $$
BEGIN
    IF cardinality(segment_no) > 0 THEN
        INSERT INTO segment (project, no, conversation, parent_segment, parent_index, base_depth)
        SELECT in_project, segment_no[i], segment_conversation[i], segment_parent[i],
            segment_parent_index[i], segment_depth[i]
        FROM generate_subscripts(segment_no, 1) AS i;
    END IF;
    IF cardinality(body_digest) > 0 THEN
        -- In one order for all, so that nobody waits for somebody who waits.
        INSERT INTO body (project, digest, body)
        SELECT in_project, body_digest[i], body_bytes[i]
        FROM generate_subscripts(body_digest, 1) AS i ORDER BY body_digest[i]
        ON CONFLICT DO NOTHING;
    END IF;
    -- Turns, branches, operations: in the order in which a transaction of many statements writes
    -- them, so that neither waits for the other in turn. The parts of a WITH run behind its main
    -- statement, the last one first.
    WITH noted AS (
        INSERT INTO unfed (project, conversation, seq, nth)
        SELECT in_project, operation_conversation[i], operation_seq[i], 1
        FROM generate_subscripts(operation_conversation, 1) AS i
    ), made AS (
        INSERT INTO operation (project, conversation, seq, kind, actor, at, detail, purged, hash,
            undone, key, fingerprint, answer, turns)
        SELECT in_project, operation_conversation[i], operation_seq[i], operation_kind[i],
            operation_actor[i], operation_at[i], operation_detail[i], false, operation_hash[i],
            false, operation_key[i], operation_fingerprint[i], operation_answer[i],
            operation_turns[i]
        FROM generate_subscripts(operation_conversation, 1) AS i
    ), moved AS (
        INSERT INTO branch (project, conversation, id, name, tip_segment, tip_index, forked_from,
            created_at, version)
        SELECT in_project, branch_conversation[i], branch_id[i], branch_name[i],
            branch_segment[i], branch_index[i], branch_forked[i], branch_at[i], branch_version[i]
        FROM generate_subscripts(branch_conversation, 1) AS i
        ON CONFLICT (project, conversation, id) DO UPDATE SET
            tip_segment = excluded.tip_segment, tip_index = excluded.tip_index,
            version = excluded.version
    )
    INSERT INTO turn (project, segment, index, conversation, id, hash, operation, depth,
        created_at, form, body, shared, tool_call_id, metadata, origin)
    SELECT in_project, turn_segment[i], turn_index[i], turn_conversation[i], turn_id[i],
        turn_hash[i], turn_operation[i], turn_depth[i], turn_at[i], turn_form[i], turn_body[i],
        turn_shared[i], turn_call[i], turn_metadata[i], turn_origin[i]
    FROM generate_subscripts(turn_conversation, 1) AS i;
END $$;
