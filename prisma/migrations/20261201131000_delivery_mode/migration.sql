-- How hints travel (H7). PUSH: to each member. PULL, from a number of members on: once, to the conversation's channel. Whoever
-- changes the number of members settles the mode in the same transaction.

-- Until then hints go both ways, for those who have not yet heard of the last switch.
ALTER TABLE conversations ADD COLUMN both_until timestamptz(3);
CREATE INDEX conversations_both_until_idx ON conversations (both_until) WHERE both_until IS NOT NULL;

-- Who is told of what happens in a conversation whose lock the caller holds: the members one by one (else null), its channel,
-- or both. In PULL it costs the same whatever the number of members.
CREATE FUNCTION audience_of(c conversations, OUT audience text[], OUT channel boolean)
LANGUAGE plpgsql AS $$
DECLARE is_both boolean := coalesce(c.both_until > clock_timestamp(), false);
BEGIN
  channel := c.mode = 'PULL' OR is_both;
  IF c.mode = 'PUSH' OR is_both THEN
    audience := ARRAY(SELECT m.user_id FROM members m WHERE m.conv_id = c.id AND m.to_seq IS NULL);
  END IF;
END $$;

-- Sets the mode that fits the number of members, under the conversation's lock: PULL from p_pull_at on, PUSH again below 0.8 of
-- it, in between as before; a channel always PULL. A switch begins p_both_ms of both ways, and its audience is every member.
CREATE FUNCTION settle_mode(p_conv uuid, p_pull_at integer, p_both_ms integer,
                            OUT switched boolean, OUT audience text[], OUT channel boolean)
LANGUAGE plpgsql AS $$
DECLARE c conversations; v_mode delivery_mode;
BEGIN
  SELECT * INTO STRICT c FROM conversations x WHERE x.id = p_conv;
  v_mode := CASE WHEN c.type = 'CHANNEL' OR c.member_count >= p_pull_at THEN 'PULL'
                 WHEN c.member_count < 0.8 * p_pull_at THEN 'PUSH' ELSE c.mode END;
  switched := v_mode <> c.mode;
  IF switched THEN
    UPDATE conversations x SET mode = v_mode, both_until = clock_timestamp() + p_both_ms * interval '1 millisecond'
     WHERE x.id = p_conv RETURNING * INTO c;
    c.both_until := 'infinity';                     -- however slow this is: it begins both ways
  END IF;
  SELECT a.audience, a.channel INTO audience, channel FROM audience_of(c) a;
END $$;

DROP FUNCTION send_event;
DROP FUNCTION recall_event;

-- send: 'ok' | 'duplicate' | 'conflict' | 'not_member' | 'cursor_ahead' | 'bad_quote', or what
-- device_status says. audience and channel: as audience_of says; any answer but 'ok' has none.
-- A client id that another conversation takes at the same moment raises unique_violation: roll back and ask again (L3).
CREATE FUNCTION send_event(p_conv uuid, p_user text, p_device text, p_epoch integer, p_via event_via, p_client text, p_type text,
                           p_counts boolean, p_content jsonb, p_fingerprint bytea, p_quote bigint, p_mentions text[],
                           p_read_to bigint,
                           OUT status text, OUT seq bigint, OUT head bigint, OUT conv_type conv_type, OUT audience text[],
                           OUT channel boolean)
LANGUAGE plpgsql AS $$
DECLARE c conversations; k record; n bigint := p_counts::int; v_own bigint; v_at timestamptz(3);
BEGIN
  SELECT * INTO c FROM conversations x WHERE x.id = p_conv FOR NO KEY UPDATE;
  status := device_status(p_device, p_epoch);
  IF status <> 'ok' THEN RETURN; END IF;
  -- one statement, so that retention cannot move the key from one table to the other between two looks
  SELECT e.seq, e.fingerprint INTO k FROM events e WHERE e.sender_id = p_user AND e.client_id = p_client
  UNION ALL
  SELECT s.seq, s.fingerprint FROM spent_client_ids s WHERE s.sender_id = p_user AND s.client_id = p_client;
  IF FOUND THEN
    status := CASE WHEN k.fingerprint = p_fingerprint THEN 'duplicate' ELSE 'conflict' END;
    seq := k.seq;
    RETURN;
  END IF;
  PERFORM FROM members m WHERE m.user_id = p_user AND m.conv_id = p_conv AND m.to_seq IS NULL;
  IF NOT FOUND OR c.dissolved_seq IS NOT NULL THEN status := 'not_member'; RETURN; END IF;
  head := c.head;
  IF p_read_to > c.head THEN status := 'cursor_ahead'; RETURN; END IF;
  IF p_quote IS NOT NULL AND NOT (can_see(p_user, p_conv, p_quote) AND EXISTS (
       SELECT FROM events e WHERE e.conv_id = p_conv AND e.seq = p_quote AND e.seq >= c.min_seq AND e.kind = 'MESSAGE'
          AND e.recalled_by IS NULL)) THEN
    status := 'bad_quote';
    RETURN;
  END IF;
  -- the read that comes with the send locks the user before the member
  IF p_read_to IS NOT NULL THEN PERFORM FROM users u WHERE u.id = p_user FOR NO KEY UPDATE; END IF;
  UPDATE conversations x SET head = x.head + 1, head_msg_no = x.head_msg_no + n, head_at = greatest(x.head_at, clock_timestamp())
   WHERE x.id = p_conv RETURNING x.head, x.head_at INTO head, v_at;
  seq := head;
  UPDATE members m SET own_no = m.own_no + n, last_own_seq = CASE WHEN p_counts THEN seq ELSE m.last_own_seq END
   WHERE m.user_id = p_user AND m.conv_id = p_conv RETURNING m.own_no INTO v_own;
  status := device_status(p_device, p_epoch);      -- again: a read of the same member may have been waited for
  IF status <> 'ok' THEN RETURN; END IF;
  INSERT INTO events (conv_id, seq, msg_no, own_no, sender_id, at, kind, content_type, counts, via, client_id, content,
                      quote_seq, mentions, fingerprint)
  VALUES (p_conv, seq, c.head_msg_no + n, CASE WHEN p_counts THEN v_own END, p_user, v_at, 'MESSAGE', p_type, p_counts, p_via,
          p_client, p_content, p_quote, p_mentions, p_fingerprint);
  conv_type := c.type;
  SELECT a.audience, a.channel INTO audience, channel FROM audience_of(c) a;
END $$;

-- recall: 'ok' | 'already' | 'not_member' | 'not_recallable', or what device_status says. The sender within the window, an owner
-- or admin at any time (L6). audience and channel: as audience_of says; any answer but 'ok' has none.
CREATE FUNCTION recall_event(p_conv uuid, p_user text, p_device text, p_epoch integer, p_via event_via, p_seq bigint,
                             p_window_ms bigint,
                             OUT status text, OUT seq bigint, OUT conv_type conv_type, OUT audience text[],
                             OUT channel boolean)
LANGUAGE plpgsql AS $$
DECLARE c conversations; m members; e events;
BEGIN
  SELECT * INTO c FROM conversations x WHERE x.id = p_conv FOR NO KEY UPDATE;
  status := device_status(p_device, p_epoch);
  IF status <> 'ok' THEN RETURN; END IF;
  SELECT * INTO m FROM members x WHERE x.user_id = p_user AND x.conv_id = p_conv AND x.to_seq IS NULL;
  IF NOT FOUND OR c.dissolved_seq IS NOT NULL THEN status := 'not_member'; RETURN; END IF;
  conv_type := c.type;
  SELECT * INTO e FROM events x WHERE x.conv_id = p_conv AND x.seq = p_seq AND x.seq >= c.min_seq AND x.kind = 'MESSAGE'
     AND can_see(p_user, p_conv, x.seq) AND (m.role IN ('OWNER', 'ADMIN') OR x.sender_id = p_user);
  IF NOT FOUND THEN status := 'not_recallable'; RETURN; END IF;
  IF e.recalled_by IS NOT NULL THEN
    status := CASE WHEN can_see(p_user, p_conv, e.recalled_by) THEN 'already' ELSE 'not_recallable' END;
    seq := e.recalled_by;
    RETURN;
  END IF;
  IF m.role = 'MEMBER' AND clock_timestamp() > e.at + p_window_ms * interval '1 millisecond' THEN
    status := 'not_recallable';
    RETURN;
  END IF;
  seq := append_event(p_conv, 'RECALL', 'RECALL', p_user, p_via, false, NULL, p_seq);
  UPDATE events x SET recalled_by = recall_event.seq, content = NULL, quote_seq = NULL, mentions = '{}'
   WHERE x.conv_id = p_conv AND x.seq = p_seq;
  IF e.counts THEN
    UPDATE conversations x SET last_recalled_seq = greatest(x.last_recalled_seq, p_seq) WHERE x.id = p_conv;
  END IF;
  SELECT a.audience, a.channel INTO audience, channel FROM audience_of(c) a;
END $$;
