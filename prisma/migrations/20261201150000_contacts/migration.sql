-- Contacts: a row for each direction, and one request for each ordered pair. Nothing is deleted: what is gone is a row that
-- says so, with the number of its last change (C1). Every write holds the row locks of both users.

CREATE TYPE request_state AS ENUM ('PENDING', 'ACCEPTED', 'REFUSED', 'WITHDRAWN');

CREATE TABLE contacts (
  user_id   text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  peer_id   text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  active    boolean NOT NULL,
  since     timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  remark    text,
  muted     boolean NOT NULL DEFAULT false,
  pinned    boolean NOT NULL DEFAULT false,
  blocked   boolean NOT NULL DEFAULT false,
  change_no bigint NOT NULL,
  PRIMARY KEY (user_id, peer_id),
  CHECK (user_id <> peer_id)
);

CREATE TABLE contact_requests (
  from_id        text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  to_id          text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  state          request_state NOT NULL,
  text           text,
  requested_at   timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  handled_at     timestamptz(3),
  from_change_no bigint NOT NULL,
  to_change_no   bigint NOT NULL,
  PRIMARY KEY (from_id, to_id),
  CHECK (from_id <> to_id),
  CHECK ((state = 'PENDING') = (handled_at IS NULL))
);
CREATE INDEX contact_requests_to_id_from_id_idx ON contact_requests (to_id, from_id);

-- Whether p_user may write to p_peer in their direct conversation: 'ok' | 'blocked' | 'no_contact'. Whoever deleted a contact is
-- not told: they find out here. VOLATILE, so that it sees what was committed while the conversation's lock was waited for (M5).
CREATE FUNCTION direct_status(p_user text, p_peer text, p_contacts_only boolean) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE theirs contacts;
BEGIN
  SELECT * INTO theirs FROM contacts k WHERE k.user_id = p_peer AND k.peer_id = p_user;
  IF theirs.blocked THEN RETURN 'blocked'; END IF;
  IF p_contacts_only AND NOT (coalesce(theirs.active, false) AND EXISTS (
       SELECT FROM contacts k WHERE k.user_id = p_user AND k.peer_id = p_peer AND k.active)) THEN
    RETURN 'no_contact';
  END IF;
  RETURN 'ok';
END $$;

-- send: 'ok' | 'duplicate' | 'conflict' | 'not_member' | 'blocked' | 'no_contact' | 'cursor_ahead' | 'bad_quote', or what
-- device_status says. audience and channel: as audience_of says; any answer but 'ok' has none.
-- A client id that another conversation takes at the same moment raises unique_violation: roll back and ask again (L3).
DROP FUNCTION send_event;
CREATE FUNCTION send_event(p_conv uuid, p_user text, p_device text, p_epoch integer, p_via event_via, p_client text, p_type text,
                           p_counts boolean, p_content jsonb, p_fingerprint bytea, p_quote bigint, p_mentions text[],
                           p_read_to bigint, p_contacts_only boolean,
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
