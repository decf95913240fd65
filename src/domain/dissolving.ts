// The job that follows dissolving: writes the end into the members' rows, some at a time, so that nobody waits long for the
// locks (C4). Clients see a dissolved group as left from the first moment; this makes it true of every row, and of `changes`.
// It may stop anywhere and runs on every node: the conversation's lock decides who does the next batch.
import type { ConvId, ConvType } from '../model.js';
import { commit } from './commit.js';
import type { Deps } from './deps.js';
import { Recurring } from './recurring.js';

const batch = 500;

export const createDissolving = (deps: Deps, everyMs: number): Recurring =>
  new Recurring(() => closeAll(deps), {
    everyMs,
    log: deps.log,
    failed: 'a dissolved group could not be closed, trying again',
  });

async function closeAll(deps: Deps): Promise<void> {
  for (;;) {
    const next = await deps.store.groups.dissolving();
    if (next === null) return;
    await closeSome(deps, next);
  }
}

function closeSome(deps: Deps, { id: conv, type }: { readonly id: ConvId; readonly type: ConvType }): Promise<void> {
  return commit(deps, async (tx, tell) => {
    const about = {
      kind: 'conv',
      conv,
      conversationType: type,
      contentType: 'GROUP_DISSOLVE',
      originDevice: null,
    } as const;
    for (const [user, change] of await tx.groups.closeDissolved(conv, batch)) tell([user], { ...about, change });
  });
}
