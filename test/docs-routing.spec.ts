import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SKIP_REASONS } from '../src/gateway/candidate-report.js';

it('docs/routing.md tells every reason for which a candidate is skipped, in the words of the code', () => {
  const page = readFileSync(new URL('../docs/routing.md', import.meta.url), 'utf8');
  const start = page.indexOf('| `skipped`');
  const table = page.slice(start, page.indexOf('\n\n', start));
  const rows = [...table.matchAll(/^\| `([a-z_]+)` +\| (.+?) +\|$/gm)].map(([, reason, why]) => [
    reason,
    why,
  ]);
  expect(Object.fromEntries(rows.slice(1))).toEqual(SKIP_REASONS);
});
