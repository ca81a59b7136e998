import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { changed } from '../../../test/support/one-mistake.js';

describe('slot groups, queues, spills and heartbeats with one mistake', () => {
  const key = 'key: sk-abcdefgh1234';
  const cases: [from: string, to: string, problem: string][] = [
    [
      'models:',
      'slot_groups: [gpu0]\nmodels:',
      'slot_groups (line 11): must be a mapping of ids to limits, not a list',
    ],
    [
      'models:',
      'slot_groups: { gpu0: 0 }\nmodels:',
      'slot_groups.gpu0 (line 11): must be a whole number ≥ 1, or { limit: 1, settle: PT200MS }, not 0',
    ],
    [
      'models:',
      'slot_groups: { gpu0: { settle: PT1S } }\nmodels:',
      'slot_groups.gpu0.limit (line 11): the required key "limit" is missing, for example limit: 1',
    ],
    [
      'models:',
      'slot_groups: { gpu0: { limit: 1.5 } }\nmodels:',
      'slot_groups.gpu0.limit (line 11): must be a whole number ≥ 1, not 1.5',
    ],
    [
      'models:',
      'slot_groups: { gpu0: { limit: 1, settel: PT1S } }\nmodels:',
      'slot_groups.gpu0.settel (line 11): unknown key; known here: limit, settle',
    ],
    [
      'model: real',
      'model: real\n    slot_group: gpu7\nslot_groups: { gpu0: 1 }',
      'upstreams[0].slot_group (line 11): no slot group has the id "gpu7"; slot_groups lists them; did you mean "gpu0"?',
    ],
    [key, 'slot_group: gpu7', 'providers[0].slot_group (line 6): no slot group has the id "gpu7"'],
    [key, 'slot_group: 1', 'providers[0].slot_group (line 6): must be a text, not 1; quote it'],
    ['name: m1', 'name: m1\n    queue: true', 'models[0].queue (line 13): must be a mapping, not a boolean'],
    [
      'name: m1',
      'name: m1\n    queue: { size: 0 }',
      'models[0].queue.size (line 13): must be a whole number ≥ 1, not 0',
    ],
    [
      'name: m1',
      'name: m1\n    queue: { max_bytes: lots }',
      'models[0].queue.max_bytes (line 13): must be a size such as 64MiB',
    ],
    [
      'name: m1',
      'name: m1\n    queue: { waits: PT1S }',
      'models[0].queue.waits (line 13): unknown key "waits" in models[].queue; did you mean "wait"?',
    ],
    [
      'name: m1',
      'name: m1\n    heartbeat: PT10S',
      'models[0].heartbeat (line 13): must be a mapping, not a text',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [{ upstream: u1, spill_after: PT1S }]',
      'models[0].upstreams[0].spill_after (line 13): needs a queue: without one nobody waits; add queue: {} to the model',
    ],
    [
      'upstreams: [u1]',
      'upstreams: [{ upstream: u1, spill_min_priority: 1001 }]\n    queue: {}',
      'models[0].upstreams[0].spill_min_priority (line 13): must be a whole number from -1000 to 1000, not 1001',
    ],
  ];

  it.each(['0', '{ limit: 1.5 }', '{ limit: 1, settel: PT1S }'])(
    'says nothing of those who refer to a group that is wrong: %s',
    (group) => {
      expect(
        changed('model: real', `model: real\n    slot_group: gpu0\nslot_groups: { gpu0: ${group} }`),
      ).toEqual([expect.stringMatching(/^slot_groups\.gpu0\b/)]);
    },
  );

  it('says nothing of references to a list of groups that is none', () => {
    expect(changed('model: real', 'model: real\n    slot_group: gpu0\nslot_groups: [gpu0]')).toEqual([
      'slot_groups (line 12): must be a mapping of ids to limits, not a list',
    ]);
  });

  it.each(cases)('%j → %j', (from, to, problem) => {
    const lines = changed(from, to);
    expect(lines.filter((line) => line.includes(problem))).toHaveLength(1);
  });
});
