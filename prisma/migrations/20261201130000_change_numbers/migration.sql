-- Change numbers travel with what they number (C2): whoever changes a user's own state learns the number, so that the hint can
-- say it and a node can tell which change it has not heard of (H5). Each number of a user belongs to one row change at most:
-- what changes several rows of one user draws a number for each.

DROP FUNCTION touch_users;
DROP FUNCTION mark_all_read;
DROP FUNCTION mark_read_many;
DROP FUNCTION mark_read;

-- Locks these users in the order of their ids and raises their change numbers (C2). Returns those that exist, with the number.
CREATE FUNCTION touch_users(p_users text[]) RETURNS TABLE (id text, change bigint)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM users u WHERE u.id = ANY (p_users) ORDER BY u.id FOR NO KEY UPDATE;
  RETURN QUERY UPDATE users u SET change_no = u.change_no + 1 WHERE u.id = ANY (p_users) RETURNING u.id, u.change_no;
END $$;

-- mark_read: 'ok' | 'not_member' | 'cursor_ahead', or what device_status says. moved: announce it (R4), with its change number;
-- else a concurrent markRead went further, or there was nothing to do. The guard in the UPDATE is the merge (R3). The answer is
-- read from conv_state afterwards; the device is looked at after the last wait for a lock (I3).
CREATE FUNCTION mark_read(p_user text, p_device text, p_epoch integer, p_conv uuid, p_seq bigint,
   OUT status text, OUT moved boolean, OUT read bigint, OUT unread bigint, OUT head bigint, OUT conv_type conv_type,
   OUT change bigint)
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
      IF moved THEN change := n;
      ELSE UPDATE users u SET change_no = n - 1 WHERE u.id = p_user; END IF;    -- nobody has seen it: no gap
    END IF;
    SELECT s.read_seq, s.unread, s.head, s.type INTO read, unread, head, conv_type
      FROM conv_state s WHERE s.user_id = p_user AND s.conv_id = p_conv;
  END IF;
  v_device := device_status(p_device, p_epoch);
  IF v_device <> 'ok' THEN status := v_device; END IF;
END $$;

-- mark_read for several: a status each, in any order; `moved` at most once a conversation. Under the user's lock nobody else
-- moves a read position or a period of this user, so the facts of all items, one snapshot, hold until the end. Of several
-- items of one conversation the largest that is not ahead is merged, and answers for the others.
CREATE FUNCTION mark_read_many(p_user text, p_device text, p_epoch integer, p_convs uuid[], p_seqs bigint[])
RETURNS TABLE (ord bigint, conv uuid, status text, moved boolean, read bigint, unread bigint, head bigint, conv_type conv_type,
               change bigint)
LANGUAGE plpgsql AS $$
DECLARE k record; done uuid; v_change bigint; v_drawn bigint := 0;
BEGIN
  SELECT u.change_no INTO v_change FROM users u WHERE u.id = p_user FOR NO KEY UPDATE;
  FOR k IN SELECT i.ord, i.conv, f.* FROM unnest(p_convs, p_seqs) WITH ORDINALITY AS i(conv, seq, ord)
            CROSS JOIN LATERAL read_facts(p_user, i.conv, i.seq) f ORDER BY i.conv, i.seq DESC
  LOOP
    ord := k.ord; conv := k.conv; moved := false; change := NULL;
    status := CASE WHEN k.head IS NULL THEN 'not_member' WHEN k.ahead THEN 'cursor_ahead' ELSE 'ok' END;
    IF status <> 'ok' THEN read := NULL; unread := NULL; head := k.head; END IF;
    IF status = 'ok' AND k.conv IS DISTINCT FROM done THEN
      done := k.conv;
      IF k.rises OR k.marked THEN
        UPDATE members m SET read_seq = k.y, read_no = k.no, marked_unread = false, change_no = v_change + v_drawn + 1
         WHERE m.user_id = p_user AND m.conv_id = k.conv AND (m.read_seq < k.x OR m.marked_unread AND m.read_seq = k.y);
        moved := FOUND;
        IF moved THEN v_drawn := v_drawn + 1; change := v_change + v_drawn; END IF;
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

-- Reads what the token's snapshot had seen and nothing newer, in at most p_limit conversations. Without a row: nothing is left.
-- 'bad_token': of another generation, or of a moment that has not been yet. complete: nothing will be left.
CREATE FUNCTION mark_all_read(p_user text, p_device text, p_epoch integer, p_generation uuid, p_snapshot pg_snapshot,
                              p_limit integer)
RETURNS TABLE (ord bigint, conv uuid, status text, moved boolean, read bigint, unread bigint, head bigint, conv_type conv_type,
               change bigint, complete boolean)
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
