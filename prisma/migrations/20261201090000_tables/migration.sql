-- The tables. Ids are compared byte by byte (COLLATE "C"): the same order here as in the code, and faster.
-- Rows that are updated all the time leave room on their page (fillfactor 70), so that the updates stay HOT.

CREATE TYPE conv_type AS ENUM ('DIRECT', 'GROUP', 'CHANNEL');
CREATE TYPE join_policy AS ENUM ('OPEN', 'APPROVAL', 'INVITE');
CREATE TYPE delivery_mode AS ENUM ('PUSH', 'PULL');
CREATE TYPE role AS ENUM ('OWNER', 'ADMIN', 'MEMBER');
CREATE TYPE event_kind AS ENUM ('MESSAGE', 'MEMBERSHIP', 'RECALL', 'NOTICE', 'CALL');
CREATE TYPE event_via AS ENUM ('DEVICE', 'SERVICE', 'USER');

CREATE TABLE generation (
  one        boolean PRIMARY KEY DEFAULT true CHECK (one),
  generation uuid NOT NULL DEFAULT gen_random_uuid(),
  since      timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO generation DEFAULT VALUES;

CREATE TABLE users (
  id         text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
  name       text,
  avatar_url text,
  change_no  bigint NOT NULL DEFAULT 0 CHECK (change_no >= 0),
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITH (fillfactor = 70);

CREATE TABLE conversations (
  id                uuid PRIMARY KEY,
  type              conv_type NOT NULL,
  title             text,
  join_policy       join_policy NOT NULL DEFAULT 'INVITE',
  history_visible   boolean NOT NULL DEFAULT false,
  mode              delivery_mode NOT NULL DEFAULT 'PUSH',
  direct_low        text COLLATE "C",
  direct_high       text COLLATE "C",
  epoch             integer NOT NULL DEFAULT 1,
  head              bigint NOT NULL DEFAULT 0,
  head_msg_no       bigint NOT NULL DEFAULT 0,
  head_at           timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  min_seq           bigint NOT NULL DEFAULT 1,
  min_msg_no        bigint NOT NULL DEFAULT 0,
  last_recalled_seq bigint NOT NULL DEFAULT 0,
  member_count      integer NOT NULL DEFAULT 0 CHECK (member_count >= 0),
  info_version      integer NOT NULL DEFAULT 0,
  dissolved_seq     bigint,
  created_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CHECK (head >= 0 AND head_msg_no BETWEEN 0 AND head),
  CHECK (min_seq BETWEEN 1 AND head + 1),
  CHECK (min_msg_no BETWEEN 0 AND least(min_seq - 1, head_msg_no)),
  CHECK (last_recalled_seq BETWEEN 0 AND head),
  CHECK (dissolved_seq <= head),
  CHECK ((type = 'DIRECT') = (direct_low IS NOT NULL AND direct_high IS NOT NULL)),
  CHECK (direct_low < direct_high)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX conversations_direct_low_direct_high_key ON conversations (direct_low, direct_high);

CREATE TABLE conv_keys (
  user_id     text COLLATE "C",
  client_id   text COLLATE "C",
  conv_id     uuid NOT NULL,
  fingerprint bytea NOT NULL,
  PRIMARY KEY (user_id, client_id)
);

CREATE TABLE members (
  user_id       text COLLATE "C" REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  conv_id       uuid REFERENCES conversations ON DELETE RESTRICT ON UPDATE RESTRICT,
  role          role NOT NULL DEFAULT 'MEMBER',
  joined_seq    bigint NOT NULL,
  first_seq     bigint NOT NULL,
  from_seq      bigint NOT NULL,
  to_seq        bigint,
  to_msg_no     bigint,
  to_at         timestamptz(3),
  hidden_no     bigint NOT NULL,
  own_no        bigint NOT NULL DEFAULT 0,
  last_own_seq  bigint NOT NULL DEFAULT 0,
  read_seq      bigint NOT NULL DEFAULT 0,
  read_no       bigint NOT NULL DEFAULT 0,
  change_no     bigint NOT NULL DEFAULT 0,
  muted         boolean NOT NULL DEFAULT false,
  marked_unread boolean NOT NULL DEFAULT false,
  hidden_up_to  bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, conv_id),
  CHECK (1 <= first_seq AND first_seq <= from_seq AND from_seq <= joined_seq),
  CHECK ((to_seq IS NULL) = (to_msg_no IS NULL) AND (to_seq IS NULL) = (to_at IS NULL)),
  CHECK (to_seq >= joined_seq AND read_seq <= to_seq),
  CHECK (hidden_no >= 0 AND own_no >= 0 AND read_seq >= 0 AND read_no >= 0),
  -- a closed period never shows a negative number
  CHECK (hidden_no + own_no + read_no <= to_msg_no)
) WITH (fillfactor = 70);
-- who is in it: the audience of a hint. to_seq is left out, so that leaving stays HOT.
CREATE INDEX members_conv_id_user_id_idx ON members (conv_id, user_id);

CREATE TABLE past_periods (
  user_id    text COLLATE "C",
  conv_id    uuid,
  joined_seq bigint,
  from_seq   bigint NOT NULL,
  to_seq     bigint NOT NULL,
  to_msg_no  bigint NOT NULL,
  hidden_no  bigint NOT NULL,
  superseded boolean NOT NULL DEFAULT false,
  PRIMARY KEY (user_id, conv_id, joined_seq),
  FOREIGN KEY (user_id, conv_id) REFERENCES members ON DELETE RESTRICT ON UPDATE RESTRICT,
  CHECK (1 <= from_seq AND from_seq <= joined_seq AND joined_seq <= to_seq),
  CHECK (hidden_no BETWEEN 0 AND to_msg_no)
);

-- No foreign key to conversations: the writer holds that row's lock.
CREATE TABLE events (
  conv_id      uuid,
  seq          bigint,
  msg_no       bigint NOT NULL,
  own_no       bigint,
  sender_id    text COLLATE "C",
  at           timestamptz(3) NOT NULL,
  kind         event_kind NOT NULL,
  content_type text NOT NULL,
  counts       boolean NOT NULL,
  via          event_via NOT NULL,
  client_id    text COLLATE "C",
  content      jsonb,
  quote_seq    bigint,
  mentions     text[] DEFAULT ARRAY[]::text[],
  target_seq   bigint,
  recalled_by  bigint,
  fingerprint  bytea,
  xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (conv_id, seq),
  CHECK (seq >= 1 AND msg_no BETWEEN 0 AND seq),
  CHECK ((own_no IS NOT NULL) = (counts AND sender_id IS NOT NULL)),
  CHECK (own_no BETWEEN 1 AND msg_no),
  CHECK (recalled_by IS NULL OR recalled_by > seq AND content IS NULL AND quote_seq IS NULL AND mentions = '{}'),
  CHECK ((client_id IS NULL) = (fingerprint IS NULL) AND (client_id IS NULL OR sender_id IS NOT NULL))
);
CREATE UNIQUE INDEX events_client ON events (sender_id, client_id) WHERE client_id IS NOT NULL;
-- O(u, s): the user's first own event after s
CREATE INDEX events_own ON events (conv_id, sender_id, seq) WHERE own_no IS NOT NULL;
-- the only events that the unread number has to look at one by one
CREATE INDEX events_recalled ON events (conv_id, seq) INCLUDE (sender_id) WHERE recalled_by IS NOT NULL AND counts;

CREATE TABLE spent_client_ids (
  sender_id   text COLLATE "C",
  client_id   text COLLATE "C",
  conv_id     uuid NOT NULL,
  seq         bigint NOT NULL,
  fingerprint bytea NOT NULL,
  at          timestamptz(3) NOT NULL,
  via         event_via NOT NULL,
  recalled_by bigint,
  PRIMARY KEY (sender_id, client_id)
);

CREATE TABLE devices (
  id            text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[A-Za-z0-9_-]{1,64}$'),
  user_id       text COLLATE "C" NOT NULL REFERENCES users ON DELETE RESTRICT ON UPDATE RESTRICT,
  name          text,
  secret_hash   bytea NOT NULL CHECK (length(secret_hash) = 32),
  install_id    text COLLATE "C",
  install_epoch integer NOT NULL DEFAULT 0 CHECK (install_epoch >= 0),
  last_seen_at  timestamptz(3),
  revoked_at    timestamptz(3),
  created_at    timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX devices_user_id_idx ON devices (user_id);

CREATE TABLE used_install_ids (
  device_id  text COLLATE "C" REFERENCES devices ON DELETE RESTRICT ON UPDATE RESTRICT,
  install_id text COLLATE "C",
  PRIMARY KEY (device_id, install_id)
);

CREATE TABLE device_cursors (
  device_id     text COLLATE "C" REFERENCES devices ON DELETE RESTRICT ON UPDATE RESTRICT,
  conv_id       uuid REFERENCES conversations ON DELETE RESTRICT ON UPDATE RESTRICT,
  install_epoch integer NOT NULL,
  delivered_seq bigint NOT NULL CHECK (delivered_seq >= 0),
  PRIMARY KEY (device_id, conv_id)
) WITH (fillfactor = 70);
