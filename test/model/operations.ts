// Each kind of step: what it asks of the API, what the oracle expects as the answer, and what the story remembers of it.
import { fresh, Refused, type Actor, type EventRow } from '../support/world.js';
import type { Log } from './oracle.js';
import type { Move } from './steps.js';
import type { ConvState, DeviceState, SentKey, Story } from './story.js';

export interface Prepared {
  readonly kind: string;
  readonly title: string;
  act(): Promise<unknown>;
  /** what it must answer when nothing else happens meanwhile */
  expected(): unknown;
  apply(answer: unknown): void;
  /** the same when others ran beside it: only what holds in any order */
  applyUnordered(answer: unknown): void;
}

interface Scene {
  readonly story: Story;
  readonly move: Move;
  readonly user: string;
  readonly device: DeviceState;
  readonly actor: Actor;
  readonly conv: ConvState;
  readonly log: Log;
}

const refused = (code: string) => ({ refused: code });
const at = <T>(list: readonly T[], pick: number): T | undefined => list[pick % Math.max(1, list.length)];

export function prepare(story: Story, move: Move): Prepared {
  const conv = at(story.convs, move.conv);
  if (!conv) throw new Error('a story has conversations');
  // mostly somebody for whom the step makes sense, sometimes anybody
  const fitting = story.users.filter(
    (user) => (move.kind === 'join' || move.kind === 'add') !== conv.log.isJoined(user),
  );
  const user = (move.pick % 10 === 0 ? undefined : at(fitting, move.user)) ?? at(story.users, move.user);
  const device = at(story.devices.get(user ?? '') ?? [], move.device);
  if (!user || !device) throw new Error('a story has users with devices');
  const scene: Scene = { story, move, user, device, actor: device.actor, conv, log: conv.log };
  const nothing = { apply: () => undefined, applyUnordered: () => undefined };
  const title = `${move.kind} by ${user} in ${conv.id} ${JSON.stringify(move)}`;
  return { kind: move.kind, title, ...nothing, ...operations[move.kind](scene) };
}

/** A seq at or beside the interesting places. */
function someSeq({ log, move, user }: Scene): number {
  const { pick, near, odd } = move;
  const beside = odd ? 0 : (pick % 3) - 1;
  const own = log.entries
    .filter(({ sender, recalledBy }) => sender === user || recalledBy !== null)
    .map(({ seq }) => seq);
  const places = { head: [log.head], edge: [log.min, ...log.edges(user)], floor: [log.min - 1], own, any: [] }[near];
  const place = at(places, pick);
  return Math.max(0, place === undefined ? pick % (log.head + 1) : Math.min(place + beside, log.head));
}

type Operation = Pick<Prepared, 'act' | 'expected'> & Partial<Pick<Prepared, 'apply' | 'applyUnordered'>>;

function send(scene: Scene, key: Omit<SentKey, 'seq'>, known: SentKey | undefined): Operation {
  const { story, actor, user } = scene;
  const { conv: id, clientId, text } = key;
  const log = story.convs.find((conv) => conv.id === id)?.log;
  const remember = (answer: unknown) => {
    const { seq } = answer as { seq?: number };
    if (seq !== undefined && !story.keys.some((k) => k.user === user && k.clientId === clientId))
      story.keys.push({ ...key, seq });
  };
  return {
    act: async () => {
      const { event, duplicate } = await actor.send(id, text, { clientId });
      return { seq: event.seq, duplicate, recalled: event.recalled, text: event.text };
    },
    expected: () => {
      if (known) {
        if (known.conv !== id || known.text !== text) return refused('IDEMPOTENCY_CONFLICT');
        const recalled = log?.entries[known.seq - 1]?.recalledBy !== null;
        return { seq: known.seq, duplicate: true, recalled, text: recalled ? null : text };
      }
      return log?.isJoined(user)
        ? { seq: log.head + 1, duplicate: false, recalled: false, text }
        : refused('NOT_MEMBER');
    },
    apply: remember,
    applyUnordered: remember,
  };
}

function membership(act: () => Promise<unknown>, allowed: boolean, code: string): Operation {
  return { act: () => act().then(() => 'done'), expected: () => (allowed ? 'done' : refused(code)) };
}

const operations: Record<Move['kind'], (scene: Scene) => Operation> = {
  send: (scene) =>
    send(scene, { user: scene.user, conv: scene.conv.id, clientId: fresh(), text: fresh('text ') }, undefined),

  /** An earlier clientId again: mostly with the same content, sometimes with another or elsewhere (L3). */
  repeat: (scene) => {
    const { story, user, move, conv } = scene;
    const known = at(
      story.keys.filter((key) => key.user === user),
      move.pick,
    );
    if (!known) return operations.send(scene);
    const changed = {
      text: move.near === 'any' ? 'other' : known.text,
      conv: move.near === 'edge' ? conv.id : known.conv,
    };
    return send(scene, { ...known, ...changed }, known);
  },

  recall: (scene) => {
    const { actor, conv, log, user } = scene;
    const seq = someSeq(scene);
    const by = scene.move.odd ? scene.story.owner : actor;
    const who = scene.move.odd ? null : user;
    return {
      act: async () => {
        const { event, target } = await by.recall(conv.id, seq);
        return { seq: event.seq, target: target.seq, recalled: target.recalled, content: target.content };
      },
      expected: () => {
        const target = log.entries[seq - 1];
        if (who !== null && !log.isJoined(who)) return refused('NOT_MEMBER');
        const isAllowed = who === null || target?.sender === who;
        if (!target?.recallable || seq < log.min || !isAllowed || (who !== null && !log.sees(who, seq)))
          return refused('NOT_RECALLABLE');
        if (who !== null && target.recalledBy !== null && !log.sees(who, target.recalledBy))
          return refused('NOT_RECALLABLE');
        return { seq: target.recalledBy ?? log.head + 1, target: seq, recalled: true, content: null };
      },
    };
  },

  markRead: (scene) => {
    const { actor, conv, log, user, move } = scene;
    const seq = move.pick % 20 === 0 ? log.head + 1 + (move.pick % 5) : someSeq(scene);
    const remember = (answer: unknown) => {
      const { read } = answer as { read?: number };
      if (read !== undefined) log.raiseRead(user, read);
    };
    return {
      act: async () => {
        const { read, unread, head } = await actor.markRead(conv.id, seq);
        return { read, unread, head };
      },
      expected: () => {
        if (!log.isKnown(user)) return refused('NOT_MEMBER');
        if (log.isJoined(user) && seq > log.head) return refused('CURSOR_AHEAD');
        log.raiseRead(user, Math.min(seq, log.headFor(user)));
        return { read: log.read(user), unread: log.unreadSeqs(user).length, head: log.headFor(user) };
      },
      apply: remember,
      applyUnordered: remember,
    };
  },

  ack: (scene) => {
    const { device, conv, log, user, move } = scene;
    const stale = device.old !== null && move.odd;
    const seq = move.pick % 20 === 0 ? log.head + 1 : someSeq(scene);
    const remember = (answer: unknown) => {
      const { delivered } = answer as { delivered?: number };
      if (delivered !== undefined) device.cursors.set(conv.id, Math.max(delivered, device.cursors.get(conv.id) ?? 0));
    };
    return {
      act: async () => {
        const { delivered } = await (stale && device.old ? device.old : device.actor).ack(conv.id, seq);
        return { delivered };
      },
      expected: () => {
        if (stale) return refused('STALE_INSTALL');
        if (!log.isKnown(user)) return refused('NOT_MEMBER');
        if (log.isJoined(user) && seq > log.head) return refused('CURSOR_AHEAD');
        return { delivered: Math.max(device.cursors.get(conv.id) ?? 0, Math.min(seq, log.headFor(user))) };
      },
      apply: remember,
      applyUnordered: remember,
    };
  },

  reinstall: ({ device, move }) => {
    const again = device.installId !== null && move.odd;
    const installId = again && device.installId !== null ? device.installId : fresh('install');
    const by = device.actor;
    return {
      act: async () => (await by.reinstall(installId)).credential,
      expected: () => {
        const [head, secret, epoch] = by.credential.split('.');
        return `${head ?? ''}.${secret ?? ''}.${String(Number(epoch) + (again ? 0 : 1))}`;
      },
      apply: (answer) => {
        if (again) return;
        device.installId = installId;
        device.old = by;
        device.actor = by.as(answer as string);
        device.cursors.clear();
      },
    };
  },

  join: (scene) => membership(() => scene.actor.join(scene.conv.id), true, ''),
  leave: (scene) => membership(() => scene.actor.leave(scene.conv.id), scene.log.isKnown(scene.user), 'NOT_MEMBER'),
  kick: (scene) => membership(() => scene.story.owner.removeMember(scene.conv.id, scene.user), true, ''),
  add: (scene) => membership(() => scene.story.owner.addMembers(scene.conv.id, [scene.user]), true, ''),

  floor: ({ story, conv, log, move }) => {
    const recalled = log.entries.filter(({ seq, recalledBy }) => recalledBy !== null && seq >= log.min);
    // just above a recalled one, a little way up, or everything
    const above = move.near === 'own' ? at(recalled, move.pick)?.seq : undefined;
    const min = move.pick % 10 === 0 ? log.head + 1 : Math.min(log.head, (above ?? log.min + (move.pick % 4)) + 1);
    return {
      // often pruned at once: what counts on the event at the floor must not need it
      act: async () => {
        const { conversations } = story.world.app.deps.store;
        const raised = await conversations.raiseFloor(conv.id as never, min);
        if (move.odd) await conversations.prune(conv.id as never, 10_000);
        return raised;
      },
      expected: () => min > log.min,
      apply: () => (log.min = Math.max(log.min, min)),
    };
  },
  prune: ({ story, conv, move }) => ({
    act: () =>
      story.world.app.deps.store.conversations.prune(conv.id as never, 1 + (move.pick % 30)).then(() => 'done'),
    expected: () => 'done',
  }),
  visible: ({ story, conv, log }) => ({
    act: () =>
      story.world.app.deps.store.pool
        .query('UPDATE conversations SET history_visible = NOT history_visible WHERE id = $1', [conv.id])
        .then(() => 'done'),
    expected: () => 'done',
    apply: () => (log.visible = !log.visible),
  }),

  /** From some local cursor to the end in small pages: all that is visible, once each (S1, S3). */
  sync: (scene) => {
    const { actor, conv, log, user, move } = scene;
    const after = someSeq(scene);
    return {
      act: async () => {
        if (!log.isKnown(user)) {
          const [item] = (await actor.sync([{ conv: conv.id, after }])).items;
          return item?.error?.code;
        }
        const [item] = (await actor.sync([{ conv: conv.id, after }], 1 + (move.pick % 4))).items;
        if (item?.reset) return item.reset.reason;
        return (await actor.catchUp(conv.id, after, 1 + (move.pick % 4))).map(seen);
      },
      expected: () =>
        log.isKnown(user)
          ? (log.resetAt(user, after) ?? log.visibleAfter(user, after).map(expectedEvent))
          : 'NOT_MEMBER',
    };
  },

  /** Backwards from some place to the floor (S4, M1). */
  history: (scene) => {
    const { actor, conv, log, user, move } = scene;
    const before = someSeq(scene) + 1;
    return {
      act: async () => {
        const events: unknown[] = [];
        for (let cursor: string | null = String(before); cursor !== null;) {
          const page = await actor.history(conv.id, { last: 1 + (move.pick % 7), before: cursor });
          events.unshift(...page.nodes.map(seen));
          cursor = page.pageInfo.hasPreviousPage ? page.pageInfo.startCursor : null;
        }
        return events;
      },
      expected: () =>
        log.isKnown(user)
          ? log
              .visibleAfter(user, 0)
              .filter(({ seq }) => seq < before)
              .map(expectedEvent)
          : refused('NOT_MEMBER'),
    };
  },

  mute: ({ actor, conv, log, user, move }) => ({
    act: async () => (await actor.setMuted(conv.id, move.odd)).muted,
    expected: () => (log.isKnown(user) ? move.odd : refused('NOT_MEMBER')),
    apply: (answer) => {
      if (answer === true) conv.muted.add(user);
      else if (answer === false) conv.muted.delete(user);
    },
  }),
};

const seen = ({ seq, recalled, content, sender }: EventRow) => {
  if (recalled && content !== null) throw new Refused('L5: a recalled body', {});
  return { seq, recalled, sender: sender?.id ?? null };
};
const expectedEvent = ({
  seq,
  recalledBy,
  sender,
}: {
  seq: number;
  recalledBy: number | null;
  sender: string | null;
}) => ({
  seq,
  recalled: recalledBy !== null,
  sender,
});
