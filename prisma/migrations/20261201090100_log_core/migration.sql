-- The log core: exact unread from ordinals, and the operations that must decide under the conversation's lock in one round trip.
--
--   C(s)   = counting events of the log with seq <= s                  events.msg_no
--   O(u,s) = those of them that u sent                                 events.own_no of u's events
--   H(u,s) = those of them outside u's periods: hidden from u          hidden_no of the period that begins at or before s
--   M(u,s) = C - O - H = messages meant for u, up to s                 members.read_no = M(u, read_seq)
--   unread = M(u, end) - M(u, lo) - recalled ones in between           lo = max(read, first_seq - 1, min_seq - 1)
--
-- Lock order, everywhere: conversations -> users (by id) -> members -> events. READ COMMITTED: each statement of a VOLATILE
-- function takes a new snapshot, so what is read after a lock has been granted is fresh (M5); a STABLE function reads with the
-- one snapshot of the statement that calls it. A status other than 'ok' may leave writes behind: the caller rolls back.

-- All intervals that a user may see: the latest lives in members, the earlier ones in past_periods.
CREATE VIEW periods AS
SELECT user_id, conv_id, from_seq, to_seq FROM members
UNION ALL
SELECT user_id, conv_id, from_seq, to_seq FROM past_periods WHERE NOT superseded;

-- A conversation as a user sees it: one row per (user, conversation). The only definition of unread (U1).
CREATE VIEW conv_state AS
SELECT m.user_id, m.conv_id, c.type, c.title, c.join_policy, c.history_visible, c.mode, c.info_version, c.epoch,
       least(c.min_seq, m.to_seq + 1) AS min_seq,            -- a former member is not told how far the floor has risen since
       CASE m.user_id WHEN c.direct_low THEN c.direct_high WHEN c.direct_high THEN c.direct_low END AS peer_id,
       coalesce(m.to_seq, c.head) AS head, coalesce(m.to_at, c.head_at) AS active_at, m.read_seq,
       m.to_seq IS NULL AND c.dissolved_seq IS NULL AS joined, m.muted, m.role,
       coalesce(m.to_msg_no, c.head_msg_no) - m.hidden_no - m.own_no                       -- M(end)
       - CASE WHEN greatest(m.read_seq, m.first_seq - 1) >= c.min_seq - 1 THEN m.read_no   -- M(read): the usual case
              ELSE -- M(min - 1): retention has overtaken the read position
                CASE WHEN c.min_seq - 1 >= m.from_seq THEN least(c.min_msg_no, m.to_msg_no) - m.hidden_no
                     ELSE (SELECT least(c.min_msg_no, p.to_msg_no) - p.hidden_no FROM past_periods p
                            WHERE p.user_id = m.user_id AND p.conv_id = m.conv_id AND NOT p.superseded
                              AND p.from_seq <= c.min_seq - 1
                            ORDER BY p.from_seq DESC LIMIT 1) END
                - CASE WHEN m.last_own_seq < c.min_seq THEN m.own_no
                       ELSE (SELECT e.own_no - 1 FROM events e
                              WHERE e.conv_id = m.conv_id AND e.sender_id = m.user_id AND e.own_no IS NOT NULL
                                AND e.seq >= c.min_seq ORDER BY e.seq LIMIT 1) END
         END
       - CASE WHEN c.last_recalled_seq <= greatest(m.read_seq, m.first_seq - 1, c.min_seq - 1) THEN 0
              ELSE (SELECT count(*) FROM events e
                     WHERE e.conv_id = m.conv_id AND e.recalled_by IS NOT NULL AND e.counts
                       AND e.seq > greatest(m.read_seq, m.first_seq - 1, c.min_seq - 1)
                       AND e.seq <= coalesce(m.to_seq, c.head)
                       AND e.sender_id IS DISTINCT FROM m.user_id
                       AND (e.seq >= m.from_seq OR EXISTS (
                             SELECT FROM past_periods p WHERE p.user_id = m.user_id AND p.conv_id = m.conv_id
                                AND NOT p.superseded AND e.seq BETWEEN p.from_seq AND p.to_seq))) END AS unread
  FROM members m JOIN conversations c ON c.id = m.conv_id;

-- What the device row says of a presented credential: 'ok' | 'revoked' | 'stale_install <epoch now>'. No device: not a device's
-- request.
-- VOLATILE, so that in a RETURNING it sees what was committed while the statement waited for a lock (I3, I5).
CREATE FUNCTION device_status(p_device text, p_epoch integer) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE d devices;
BEGIN
  IF p_device IS NULL THEN RETURN 'ok'; END IF;
  SELECT * INTO d FROM devices x WHERE x.id = p_device;
  RETURN CASE WHEN d.id IS NULL OR d.revoked_at IS NOT NULL THEN 'revoked'
              WHEN d.install_epoch <> p_epoch THEN 'stale_install ' || d.install_epoch ELSE 'ok' END;
END $$;

CREATE FUNCTION can_see(p_user text, p_conv uuid, p_seq bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM periods p WHERE p.user_id = p_user AND p.conv_id = p_conv
                    AND p_seq >= p.from_seq AND (p.to_seq IS NULL OR p_seq <= p.to_seq));
END $$;

-- Locks these users in the order of their ids and raises their change numbers (C2). Returns those that exist.
CREATE FUNCTION touch_users(p_users text[]) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM users u WHERE u.id = ANY (p_users) ORDER BY u.id FOR NO KEY UPDATE;
  RETURN QUERY UPDATE users u SET change_no = u.change_no + 1 WHERE u.id = ANY (p_users) RETURNING u.id;
END $$;

-- Appends one event. The caller holds the conversation's lock and has decided that it may. A counting event has no sender here.
CREATE FUNCTION append_event(p_conv uuid, p_kind event_kind, p_type text, p_sender text, p_via event_via, p_counts boolean,
                             p_content jsonb, p_target bigint, OUT seq bigint)
LANGUAGE plpgsql AS $$
DECLARE v_msg bigint; v_at timestamptz(3);
BEGIN
  UPDATE conversations c SET head = c.head + 1, head_msg_no = c.head_msg_no + p_counts::int,
         head_at = greatest(c.head_at, clock_timestamp())
   WHERE c.id = p_conv RETURNING c.head, c.head_msg_no, c.head_at INTO STRICT seq, v_msg, v_at;
  INSERT INTO events (conv_id, seq, msg_no, sender_id, at, kind, content_type, counts, via, content, target_seq)
  VALUES (p_conv, seq, v_msg, p_sender, v_at, p_kind, p_type, p_counts, p_via, p_content, p_target);
END $$;

-- send: 'ok' | 'duplicate' | 'conflict' | 'not_member' | 'cursor_ahead' | 'bad_quote', or what
-- device_status says.
-- A client id that another conversation takes at the same moment raises unique_violation: roll back and ask again (L3).
CREATE FUNCTION send_event(p_conv uuid, p_user text, p_device text, p_epoch integer, p_via event_via, p_client text, p_type text,
                           p_counts boolean, p_content jsonb, p_fingerprint bytea, p_quote bigint, p_mentions text[],
                           p_read_to bigint,
                           OUT status text, OUT seq bigint, OUT head bigint, OUT conv_type conv_type, OUT audience text[])
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
  audience := ARRAY(SELECT m.user_id FROM members m WHERE m.conv_id = p_conv AND m.to_seq IS NULL);
END $$;

-- Begins a period of each of these users at p_seq, whose event (if any) has just been appended. The caller holds the locks of
-- the conversation and of the users, has raised their change numbers, and knows that none of them is a member now.
CREATE FUNCTION open_periods(p_conv uuid, p_users text[], p_role role, p_seq bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE c conversations;
BEGIN
  SELECT * INTO STRICT c FROM conversations x WHERE x.id = p_conv;
  INSERT INTO past_periods (user_id, conv_id, joined_seq, from_seq, to_seq, to_msg_no, hidden_no)
  SELECT m.user_id, m.conv_id, m.joined_seq, m.from_seq, m.to_seq, m.to_msg_no, m.hidden_no
    FROM members m WHERE m.conv_id = p_conv AND m.user_id = ANY (p_users);
  IF c.history_visible THEN                         -- all of the past becomes visible, and counts as read (M2)
    UPDATE past_periods p SET superseded = true WHERE p.conv_id = p_conv AND p.user_id = ANY (p_users) AND NOT p.superseded;
    INSERT INTO members AS m (user_id, conv_id, role, joined_seq, first_seq, from_seq, hidden_no, read_seq, read_no, change_no)
    SELECT u.id, p_conv, p_role, p_seq, 1, 1, 0, p_seq - 1, c.head_msg_no, u.change_no FROM users u WHERE u.id = ANY (p_users)
    ON CONFLICT (user_id, conv_id) DO UPDATE SET role = p_role, joined_seq = p_seq, first_seq = 1, from_seq = 1, to_seq = NULL,
       to_msg_no = NULL, to_at = NULL, hidden_no = 0, read_seq = excluded.read_seq, read_no = excluded.read_no - m.own_no,
       change_no = excluded.change_no;
  ELSE
    INSERT INTO members AS m (user_id, conv_id, role, joined_seq, first_seq, from_seq, hidden_no, change_no)
    SELECT u.id, p_conv, p_role, p_seq, p_seq, p_seq, c.head_msg_no, u.change_no FROM users u WHERE u.id = ANY (p_users)
    ON CONFLICT (user_id, conv_id) DO UPDATE SET role = p_role, joined_seq = p_seq, from_seq = p_seq, to_seq = NULL,
       to_msg_no = NULL, to_at = NULL, hidden_no = m.hidden_no + c.head_msg_no - m.to_msg_no, change_no = excluded.change_no;
  END IF;
  UPDATE conversations x SET member_count = x.member_count + cardinality(p_users) WHERE x.id = p_conv;
END $$;

-- Ends the period of each of these members at p_seq: the event just appended is the last one they see (M2). Same locks.
CREATE FUNCTION close_periods(p_conv uuid, p_users text[], p_seq bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE members m SET to_seq = p_seq, to_msg_no = c.head_msg_no, to_at = c.head_at, change_no = u.change_no
    FROM conversations c, users u
   WHERE c.id = p_conv AND u.id = m.user_id AND m.conv_id = p_conv AND m.user_id = ANY (p_users) AND m.to_seq IS NULL;
  UPDATE conversations x SET member_count = x.member_count - cardinality(p_users) WHERE x.id = p_conv;
END $$;

-- recall: 'ok' | 'already' | 'not_member' | 'not_recallable', or what device_status says. The sender within the window, an owner
-- or admin at any time (L6). audience: the members now; any answer but 'ok' has none.
CREATE FUNCTION recall_event(p_conv uuid, p_user text, p_device text, p_epoch integer, p_via event_via, p_seq bigint,
                             p_window_ms bigint,
                             OUT status text, OUT seq bigint, OUT conv_type conv_type, OUT audience text[])
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
  audience := ARRAY(SELECT x.user_id FROM members x WHERE x.conv_id = p_conv AND x.to_seq IS NULL);
END $$;

-- M(u, x) for any x >= min - 1: the general case
CREATE FUNCTION mine_no(p_user text, p_conv uuid, x bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE m members; c conversations; cx bigint; own bigint; base bigint;
BEGIN
  SELECT * INTO m FROM members y WHERE y.user_id = p_user AND y.conv_id = p_conv;
  SELECT * INTO c FROM conversations y WHERE y.id = p_conv;
  cx := CASE WHEN x = c.head THEN c.head_msg_no WHEN x < c.min_seq THEN c.min_msg_no
             ELSE (SELECT e.msg_no FROM events e WHERE e.conv_id = p_conv AND e.seq = x) END;
  own := CASE WHEN m.last_own_seq <= x THEN m.own_no
              ELSE (SELECT e.own_no - 1 FROM events e WHERE e.conv_id = p_conv AND e.sender_id = p_user AND e.own_no IS NOT NULL
                       AND e.seq > x ORDER BY e.seq LIMIT 1) END;
  base := CASE WHEN x >= m.from_seq THEN least(cx, m.to_msg_no) - m.hidden_no
               ELSE (SELECT least(cx, p.to_msg_no) - p.hidden_no FROM past_periods p
                      WHERE p.user_id = p_user AND p.conv_id = p_conv AND NOT p.superseded AND p.from_seq <= x
                      ORDER BY p.from_seq DESC LIMIT 1) END;
  RETURN coalesce(base - own, 0);
END $$;

-- What a markRead finds, all of one snapshot: x = the position asked for (a former member is capped at the end of the last
-- period, R2), rises = it lies above the present one, y = the position after it, no = M(u, y). M is a pure function of
-- (log, periods, y), so `no` stays right however late it is stored. At the head it costs one query.
CREATE FUNCTION read_facts(p_user text, p_conv uuid, p_seq bigint,
   OUT x bigint, OUT rises boolean, OUT ahead boolean, OUT no bigint, OUT y bigint, OUT head bigint, OUT marked boolean)
LANGUAGE plpgsql STABLE AS $$
DECLARE f record; cx bigint; own bigint;
BEGIN
  SELECT m.from_seq, m.to_seq, m.to_msg_no, m.hidden_no, m.own_no, m.last_own_seq, m.read_seq, m.read_no, m.marked_unread,
         c.head, c.head_msg_no, c.min_seq, c.min_msg_no INTO f
    FROM members m, conversations c WHERE m.user_id = p_user AND m.conv_id = p_conv AND c.id = p_conv;
  IF NOT FOUND THEN RETURN; END IF;
  marked := f.marked_unread;
  x := least(p_seq, f.to_seq);
  head := coalesce(f.to_seq, f.head);
  ahead := x > head;
  rises := NOT ahead AND x > f.read_seq;
  y := CASE WHEN rises THEN x ELSE f.read_seq END;
  IF NOT rises OR x < f.min_seq - 1 THEN no := f.read_no;
  ELSIF x < f.from_seq THEN no := mine_no(p_user, p_conv, x);
  ELSE
    IF x = f.head THEN cx := f.head_msg_no; ELSIF x < f.min_seq THEN cx := f.min_msg_no;
    ELSE SELECT e.msg_no INTO cx FROM events e WHERE e.conv_id = p_conv AND e.seq = x; END IF;
    IF f.last_own_seq <= x THEN own := f.own_no;
    ELSE SELECT e.own_no - 1 INTO own FROM events e WHERE e.conv_id = p_conv AND e.sender_id = p_user AND e.own_no IS NOT NULL
            AND e.seq > x ORDER BY e.seq LIMIT 1; END IF;
    no := least(cx, f.to_msg_no) - f.hidden_no - own;
  END IF;
END $$;

-- mark_read: 'ok' | 'not_member' | 'cursor_ahead', or what device_status says. moved: announce it (R4); else a concurrent
-- markRead went further, or there was nothing to do. The guard in the UPDATE is the merge (R3). The answer is read from
-- conv_state afterwards; the device is looked at after the last wait for a lock (I3).
CREATE FUNCTION mark_read(p_user text, p_device text, p_epoch integer, p_conv uuid, p_seq bigint,
   OUT status text, OUT moved boolean, OUT read bigint, OUT unread bigint, OUT head bigint, OUT conv_type conv_type)
LANGUAGE plpgsql AS $$
DECLARE t record; n bigint; v_device text;
BEGIN
  t := read_facts(p_user, p_conv, p_seq);
  status := CASE WHEN t.head IS NULL THEN 'not_member' WHEN t.ahead THEN 'cursor_ahead' ELSE 'ok' END;
  moved := false;
  head := t.head;
  IF status = 'ok' THEN
    IF t.rises OR t.marked THEN
      UPDATE users u SET change_no = u.change_no + 1 WHERE u.id = p_user RETURNING u.change_no INTO n;
      UPDATE members m SET read_seq = t.y, read_no = t.no, marked_unread = false, change_no = n
       WHERE m.user_id = p_user AND m.conv_id = p_conv AND (m.read_seq < t.x OR m.marked_unread AND m.read_seq = t.y);
      moved := FOUND;
    END IF;
    SELECT s.read_seq, s.unread, s.head, s.type INTO read, unread, head, conv_type
      FROM conv_state s WHERE s.user_id = p_user AND s.conv_id = p_conv;
  END IF;
  v_device := device_status(p_device, p_epoch);
  IF v_device <> 'ok' THEN status := v_device; END IF;
END $$;

-- The seqs that make up the number (U6): the definition U1, by counting rows. At most p_first + 1, to tell whether there are more.
CREATE FUNCTION unread_audit(p_user text, p_conv uuid, p_after bigint, p_first integer) RETURNS SETOF bigint
LANGUAGE sql STABLE AS $$
  SELECT e.seq FROM members m JOIN conversations c ON c.id = m.conv_id
    JOIN periods p ON p.user_id = m.user_id AND p.conv_id = m.conv_id
    JOIN events e ON e.conv_id = m.conv_id AND e.seq > m.read_seq AND e.seq >= greatest(p.from_seq, c.min_seq)
                 AND e.seq <= coalesce(p.to_seq, c.head)
   WHERE m.user_id = p_user AND m.conv_id = p_conv AND e.seq > p_after AND e.counts AND e.recalled_by IS NULL
     AND e.sender_id IS DISTINCT FROM p_user
   ORDER BY e.seq LIMIT p_first + 1
$$;

-- Retention in two steps (L7): raise_floor decides what exists (logic), prune removes rows in small bites (space).
CREATE FUNCTION raise_floor(p_conv uuid, p_min bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE c conversations;
BEGIN
  SELECT * INTO STRICT c FROM conversations x WHERE x.id = p_conv FOR NO KEY UPDATE;
  IF p_min <= c.min_seq OR p_min > c.head + 1 THEN RETURN false; END IF;
  UPDATE conversations x SET min_seq = p_min,
         min_msg_no = (SELECT e.msg_no FROM events e WHERE e.conv_id = p_conv AND e.seq = p_min - 1)
   WHERE x.id = p_conv;
  RETURN true;
END $$;

-- Run it only when raise_floor has been committed. The client ids stay spent (L3).
CREATE FUNCTION prune(p_conv uuid, p_limit integer) RETURNS bigint LANGUAGE sql AS $$
  WITH gone AS (
    DELETE FROM events e WHERE e.conv_id = p_conv AND e.seq IN (
      SELECT x.seq FROM events x JOIN conversations c ON c.id = x.conv_id
       WHERE x.conv_id = p_conv AND x.seq < c.min_seq ORDER BY x.seq LIMIT p_limit)
    RETURNING e.*
  ), kept AS (
    INSERT INTO spent_client_ids (sender_id, client_id, conv_id, seq, fingerprint, at, via, recalled_by)
    SELECT sender_id, client_id, conv_id, seq, fingerprint, at, via, recalled_by FROM gone WHERE client_id IS NOT NULL
  )
  SELECT count(*) FROM gone
$$;

-- After a restore (L8): a new generation, every log a new epoch, no position above its head.
CREATE FUNCTION begin_generation() RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE v uuid;
BEGIN
  UPDATE generation g SET generation = gen_random_uuid(), since = CURRENT_TIMESTAMP RETURNING g.generation INTO v;
  UPDATE conversations c SET epoch = c.epoch + 1;
  UPDATE members m SET read_seq = coalesce(m.to_seq, c.head), read_no = mine_no(m.user_id, m.conv_id, coalesce(m.to_seq, c.head))
    FROM conversations c WHERE c.id = m.conv_id AND m.read_seq > coalesce(m.to_seq, c.head);
  UPDATE device_cursors d SET delivered_seq = coalesce(m.to_seq, c.head)
    FROM conversations c, members m, devices x
   WHERE c.id = d.conv_id AND x.id = d.device_id AND m.user_id = x.user_id AND m.conv_id = d.conv_id
     AND d.delivered_seq > coalesce(m.to_seq, c.head);
  RETURN v;
END $$;
