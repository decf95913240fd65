// The specification's own table, all ten rows.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWorld, type World } from '../support/world.js';
import { observeTable, type Row } from './rows.js';

const rules: Readonly<Record<string, string>> = {
  '09-delivery-per-device': '[D1] [U2] what one device holds says nothing of the other; unread is the user’s',
  '09-read-max-wins': '[R1] [R3] a late, lower report does not take the position back',
  '09-read-does-not-fake-delivery': '[D3] reading on one device gives the other no data',
  '09-own-messages-not-unread': '[U1] one’s own message is not unread',
  '09-read-ahead-rejected': '[R2] above head is CURSOR_AHEAD and changes nothing',
  '09-reinstall': '[I2] [I3] the old install is refused, the new one starts at 0, the read position stays',
  '09-cursor-rollback': '[D1] [D4] an old backup lowers nothing, and the device becomes whole from its own cursor',
  '09-control-read-from-delivery': '[D3] control: read derived from delivery would be caught',
  '09-control-lww-read': '[R1] control: last write wins would be caught',
  '09-read-requires-membership': '[M4] a stranger’s read is NOT_MEMBER',
};

describe('the table', () => {
  let world: World;
  let rows: Row[];
  beforeAll(async () => {
    world = await startWorld();
    rows = await observeTable(world);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test.each(Object.entries(rules))('%s: %s', (check) => {
    const row = rows.find((one) => one.check === check);
    expect(row).toBeDefined();
    expect(row?.observed).toEqual(row?.expected);
  });

  test('has these ten rows and no other', () => {
    expect(rows.map(({ check }) => check)).toEqual(Object.keys(rules));
  });
});
