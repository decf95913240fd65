-- Groups: facts of the whole conversation live on its row and are told by events (C4), never in rows per member. What one
-- member may do lives on the member's row. Pins and requests to join have tables of their own.

ALTER TABLE conversations
  ADD COLUMN notice     text,
  ADD COLUMN avatar_url text,
  ADD COLUMN all_muted  boolean NOT NULL DEFAULT false,
  ADD COLUMN banned     boolean NOT NULL DEFAULT false;
-- dissolved, and not every member row says so yet: what the closing job looks for (C4)
CREATE INDEX conversations_dissolving_idx ON conversations (id) WHERE dissolved_seq IS NOT NULL AND member_count > 0;

ALTER TABLE members
  ADD COLUMN nickname       text,
  -- may not send until then; outlives leaving
  ADD COLUMN silenced_until timestamptz(3);

CREATE TABLE pins (
  conv_id   uuid REFERENCES conversations ON DELETE RESTRICT ON UPDATE RESTRICT,
  seq       bigint,
  pinned_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (conv_id, seq)
);

-- One row for each (conversation, applicant): asking again opens it again. inviter_id: an ordinary member who wanted to add them.
CREATE TABLE join_requests (
  conv_id      uuid REFERENCES conversations ON DELETE RESTRICT ON UPDATE RESTRICT,
  user_id      text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  inviter_id   text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  state        request_state NOT NULL,
  text         text,
  requested_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  handled_at   timestamptz(3),
  handler_id   text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  PRIMARY KEY (conv_id, user_id),
  CHECK ((state = 'PENDING') = (handled_at IS NULL))
);

-- Who is shown a request (the applicant, the inviter, owner and admins), each with the number of the last change for them (C1).
-- Not shown: who was an admin and is none now, to whom it is withdrawn.
CREATE TABLE join_request_views (
  viewer_id text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  conv_id   uuid,
  user_id   text COLLATE "C",
  shown     boolean NOT NULL,
  change_no bigint NOT NULL,
  PRIMARY KEY (viewer_id, conv_id, user_id),
  FOREIGN KEY (conv_id, user_id) REFERENCES join_requests ON DELETE RESTRICT ON UPDATE RESTRICT
);

CREATE OR REPLACE VIEW conv_state AS
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
                                AND NOT p.superseded AND e.seq BETWEEN p.from_seq AND p.to_seq))) END AS unread,
       c.notice, c.avatar_url, c.all_muted, c.banned, m.silenced_until, m.nickname
  FROM members m JOIN conversations c ON c.id = m.conv_id;

-- The job that follows dissolving (C4): ends at most p_limit memberships of one such conversation at the seq that dissolved it,
-- and answers whose, with their numbers. Nothing that a client is shown changes by it. Run it until it answers nothing.
CREATE FUNCTION close_dissolved(p_conv uuid, p_limit integer) RETURNS TABLE (id text, change bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE c conversations; v_users text[];
BEGIN
  SELECT * INTO c FROM conversations x WHERE x.id = p_conv AND x.dissolved_seq IS NOT NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  v_users := ARRAY(SELECT m.user_id FROM members m WHERE m.conv_id = p_conv AND m.to_seq IS NULL ORDER BY m.user_id LIMIT p_limit);
  IF cardinality(v_users) = 0 THEN RETURN; END IF;
  RETURN QUERY SELECT t.id, t.change FROM touch_users(v_users) t;
  UPDATE members m SET to_seq = c.dissolved_seq, to_msg_no = c.head_msg_no, to_at = c.head_at, change_no = u.change_no
    FROM users u WHERE u.id = m.user_id AND m.conv_id = p_conv AND m.user_id = ANY (v_users) AND m.to_seq IS NULL;
  UPDATE conversations x SET member_count = x.member_count - cardinality(v_users) WHERE x.id = p_conv;
END $$;

-- send: 'ok' | 'duplicate' | 'conflict' | 'not_member' | 'banned' | 'reader' | 'muted' | 'blocked' | 'no_contact' | 'cursor_ahead' |
-- 'bad_quote', or what device_status says. audience and channel: as audience_of says; any answer but 'ok' has none.
-- A client id that another conversation takes at the same moment raises unique_violation: roll back and ask again (L3).
CREATE OR REPLACE FUNCTION send_event(p_conv uuid, p_user text, p_device text, p_epoch integer, p_via event_via, p_client text, p_type text,
                           p_counts boolean, p_content jsonb, p_fingerprint bytea, p_quote bigint, p_mentions text[],
                           p_read_to bigint, p_contacts_only boolean,
                           OUT status text, OUT seq bigint, OUT head bigint, OUT conv_type conv_type, OUT audience text[],
                           OUT channel boolean)
LANGUAGE plpgsql AS $$
DECLARE c conversations; k record; m members; n bigint := p_counts::int; v_own bigint; v_at timestamptz(3);
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
  SELECT * INTO m FROM members x WHERE x.user_id = p_user AND x.conv_id = p_conv AND x.to_seq IS NULL;
  IF NOT FOUND OR c.dissolved_seq IS NOT NULL THEN status := 'not_member'; RETURN; END IF;
  status := CASE WHEN c.banned THEN 'banned'
                 WHEN m.role <> 'MEMBER' OR c.type = 'DIRECT' THEN 'ok'
                 WHEN c.type = 'CHANNEL' THEN 'reader'
                 WHEN c.all_muted OR m.silenced_until > clock_timestamp() THEN 'muted' ELSE 'ok' END;
  IF status <> 'ok' THEN RETURN; END IF;
  IF c.type = 'DIRECT' THEN
    status := direct_status(p_user, CASE p_user WHEN c.direct_low THEN c.direct_high ELSE c.direct_low END, p_contacts_only);
    IF status <> 'ok' THEN RETURN; END IF;
  END IF;
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
  UPDATE members x SET own_no = x.own_no + n, last_own_seq = CASE WHEN p_counts THEN seq ELSE x.last_own_seq END
   WHERE x.user_id = p_user AND x.conv_id = p_conv RETURNING x.own_no INTO v_own;
  status := device_status(p_device, p_epoch);      -- again: a read of the same member may have been waited for
  IF status <> 'ok' THEN RETURN; END IF;
  INSERT INTO events (conv_id, seq, msg_no, own_no, sender_id, at, kind, content_type, counts, via, client_id, content,
                      quote_seq, mentions, fingerprint)
  VALUES (p_conv, seq, c.head_msg_no + n, CASE WHEN p_counts THEN v_own END, p_user, v_at, 'MESSAGE', p_type, p_counts, p_via,
          p_client, p_content, p_quote, p_mentions, p_fingerprint);
  conv_type := c.type;
  SELECT a.audience, a.channel INTO audience, channel FROM audience_of(c) a;
END $$;
