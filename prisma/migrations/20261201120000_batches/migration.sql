-- Batches: several positions in one statement, and "all that the user has looked at". Lock order as everywhere: users, then
-- members or cursors by conversation id. A row without an ord comes last and only when the credential no longer holds (or the
-- token does not): the caller refuses the whole and rolls back.

-- What a restore found in a log was written under transaction numbers of another server, which a snapshot of this one cannot
-- judge. Every token of this generation has seen it.
ALTER TABLE conversations ADD COLUMN restored_head bigint NOT NULL DEFAULT 0;

-- After a restore (L8): a new generation, every log a new epoch, no position above its head.
CREATE OR REPLACE FUNCTION begin_generation() RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE v uuid;
BEGIN
  UPDATE generation g SET generation = gen_random_uuid(), since = CURRENT_TIMESTAMP RETURNING g.generation INTO v;
  UPDATE conversations c SET epoch = c.epoch + 1, restored_head = c.head;
  UPDATE members m SET read_seq = coalesce(m.to_seq, c.head), read_no = mine_no(m.user_id, m.conv_id, coalesce(m.to_seq, c.head))
    FROM conversations c WHERE c.id = m.conv_id AND m.read_seq > coalesce(m.to_seq, c.head);
  UPDATE device_cursors d SET delivered_seq = coalesce(m.to_seq, c.head)
    FROM conversations c, members m, devices x
   WHERE c.id = d.conv_id AND x.id = d.device_id AND m.user_id = x.user_id AND m.conv_id = d.conv_id
     AND d.delivered_seq > coalesce(m.to_seq, c.head);
  RETURN v;
END $$;

-- mark_read for several: a status each, in any order; `moved` at most once a conversation. Under the user's lock nobody else
-- moves a read position or a period of this user, so the facts of all items, one snapshot, hold until the end. Of several
-- items of one conversation the largest that is not ahead is merged, and answers for the others.
CREATE FUNCTION mark_read_many(p_user text, p_device text, p_epoch integer, p_convs uuid[], p_seqs bigint[])
RETURNS TABLE (ord bigint, conv uuid, status text, moved boolean, read bigint, unread bigint, head bigint, conv_type conv_type)
LANGUAGE plpgsql AS $$
DECLARE k record; done uuid; v_change bigint; v_drawn bigint := 0;
BEGIN
  SELECT u.change_no INTO v_change FROM users u WHERE u.id = p_user FOR NO KEY UPDATE;
  FOR k IN SELECT i.ord, i.conv, f.* FROM unnest(p_convs, p_seqs) WITH ORDINALITY AS i(conv, seq, ord)
            CROSS JOIN LATERAL read_facts(p_user, i.conv, i.seq) f ORDER BY i.conv, i.seq DESC
  LOOP
    ord := k.ord; conv := k.conv; moved := false;
    status := CASE WHEN k.head IS NULL THEN 'not_member' WHEN k.ahead THEN 'cursor_ahead' ELSE 'ok' END;
    IF status <> 'ok' THEN read := NULL; unread := NULL; head := k.head; END IF;
    IF status = 'ok' AND k.conv IS DISTINCT FROM done THEN
      done := k.conv;
      IF k.rises OR k.marked THEN
        v_drawn := v_drawn + 1;
        UPDATE members m SET read_seq = k.y, read_no = k.no, marked_unread = false, change_no = v_change + v_drawn
         WHERE m.user_id = p_user AND m.conv_id = k.conv AND (m.read_seq < k.x OR m.marked_unread AND m.read_seq = k.y);
        moved := FOUND;
      END IF;
      SELECT s.read_seq, s.unread, s.head, s.type INTO read, unread, head, conv_type
        FROM conv_state s WHERE s.user_id = p_user AND s.conv_id = k.conv;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF v_drawn > 0 THEN UPDATE users u SET change_no = v_change + v_drawn WHERE u.id = p_user; END IF;
  ord := NULL; status := device_status(p_device, p_epoch);      -- after the last wait for a lock (I3, I5)
  IF status <> 'ok' THEN RETURN NEXT; END IF;
END $$;

-- The largest seq in (p_lo, p_hi] that a snapshot had seen, else p_lo. Commit order is seq order (L2), so it had seen a
-- beginning of the log: found by halving, the head first, for mostly nothing is newer.
CREATE FUNCTION last_seen(p_conv uuid, p_snapshot pg_snapshot, p_lo bigint, p_hi bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE lo bigint := p_lo; hi bigint := p_hi + 1; mid bigint := p_hi;
BEGIN
  WHILE lo + 1 < hi LOOP
    IF (SELECT pg_visible_in_snapshot(e.xid, p_snapshot) FROM events e WHERE e.conv_id = p_conv AND e.seq = mid)
    THEN lo := mid; ELSE hi := mid; END IF;
    mid := (lo + hi) / 2;
  END LOOP;
  RETURN lo;
END $$;

-- Reads what the token's snapshot had seen and nothing newer, in at most p_limit conversations. Without a row: nothing is left.
-- 'bad_token': of another generation, or of a moment that has not been yet. complete: nothing will be left.
CREATE FUNCTION mark_all_read(p_user text, p_device text, p_epoch integer, p_generation uuid, p_snapshot pg_snapshot,
                              p_limit integer)
RETURNS TABLE (ord bigint, conv uuid, status text, moved boolean, read bigint, unread bigint, head bigint, conv_type conv_type,
               complete boolean)
LANGUAGE plpgsql AS $$
DECLARE v_convs uuid[]; v_seqs bigint[];
BEGIN
  IF pg_snapshot_xmax(p_snapshot) > pg_snapshot_xmax(pg_current_snapshot())
     OR NOT EXISTS (SELECT FROM generation g WHERE g.generation = p_generation) THEN
    status := 'bad_token';
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT array_agg(t.conv_id ORDER BY t.conv_id), array_agg(t.seen ORDER BY t.conv_id) INTO v_convs, v_seqs FROM (
    SELECT m.conv_id, s.seen FROM members m JOIN conversations c ON c.id = m.conv_id
     CROSS JOIN LATERAL (SELECT greatest(m.read_seq, m.first_seq - 1) AS lo, coalesce(m.to_seq, c.head) AS hi) r
     CROSS JOIN LATERAL (SELECT greatest(r.lo, least(c.restored_head, r.hi)) AS known) o
     -- below the floor there is nothing to find, and nothing unread
     CROSS JOIN LATERAL last_seen(c.id, p_snapshot, greatest(o.known, c.min_seq - 1), r.hi) AS l(last)
     CROSS JOIN LATERAL (SELECT CASE WHEN l.last >= c.min_seq THEN l.last ELSE o.known END AS seen) s
     WHERE m.user_id = p_user AND r.lo < r.hi AND s.seen > r.lo
     ORDER BY m.conv_id LIMIT p_limit + 1) t;
  RETURN QUERY SELECT q.*, coalesce(cardinality(v_convs), 0) <= p_limit
                 FROM mark_read_many(p_user, p_device, p_epoch, coalesce(v_convs[1:p_limit], '{}'),
                                     coalesce(v_seqs[1:p_limit], '{}')) q;
END $$;

-- ack for several, with the rules of mark_read_many. What was written is undone when the device is no longer the one that
-- asked, so each row needs no look at it (I3).
CREATE FUNCTION ack_many(p_user text, p_device text, p_epoch integer, p_convs uuid[], p_seqs bigint[])
RETURNS TABLE (ord bigint, status text, delivered bigint, head bigint)
LANGUAGE plpgsql AS $$
DECLARE k record; done uuid;
BEGIN
  FOR k IN SELECT i.ord, i.conv, least(i.seq, m.to_seq) AS x, coalesce(m.to_seq, c.head) AS head
             FROM unnest(p_convs, p_seqs) WITH ORDINALITY AS i(conv, seq, ord)
             LEFT JOIN members m ON m.user_id = p_user AND m.conv_id = i.conv
             LEFT JOIN conversations c ON c.id = m.conv_id ORDER BY i.conv, i.seq DESC
  LOOP
    ord := k.ord; head := k.head;
    status := CASE WHEN k.head IS NULL THEN 'not_member' WHEN k.x > k.head THEN 'cursor_ahead' ELSE 'ok' END;
    IF status <> 'ok' THEN delivered := NULL; END IF;
    IF status = 'ok' AND k.conv IS DISTINCT FROM done THEN
      done := k.conv;
      INSERT INTO device_cursors AS t (device_id, conv_id, install_epoch, delivered_seq) VALUES (p_device, k.conv, p_epoch, k.x)
      ON CONFLICT (device_id, conv_id) DO UPDATE
         SET install_epoch = excluded.install_epoch, delivered_seq = excluded.delivered_seq
       WHERE (t.install_epoch, t.delivered_seq) < (excluded.install_epoch, excluded.delivered_seq);
      SELECT t.delivered_seq INTO delivered FROM device_cursors t WHERE t.device_id = p_device AND t.conv_id = k.conv;
    END IF;
    RETURN NEXT;
  END LOOP;
  ord := NULL; status := device_status(p_device, p_epoch);
  IF status <> 'ok' THEN RETURN NEXT; END IF;
END $$;
