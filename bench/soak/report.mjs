// The result as a Markdown table, printed and, where asked, put between the markers of a page.
import { readFileSync, writeFileSync } from 'node:fs';

const BEGIN = '<!-- soak:begin -->';
const END = '<!-- soak:end -->';

export function table(rows) {
  const lines = ['| what | measured | must be | |', '| --- | --- | --- | --- |'];
  for (const { what, measured, must = '', ok } of rows) {
    lines.push(`| ${what} | ${measured} | ${must} | ${ok === undefined ? '' : ok ? 'ok' : '**no**'} |`);
  }
  return lines.join('\n');
}

export function counted(counts) {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return entries.map(([name, count]) => `${name} ${count}`).join(', ');
}

/** Replaces what stands between the markers; a page without them gets them at its end. */
export function writeBetweenMarkers(file, text) {
  let page = '';
  try {
    page = readFileSync(file, 'utf8');
  } catch {
    page = '# Reliability\n';
  }
  const block = `${BEGIN}\n${text}\n${END}`;
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  const whole =
    from >= 0 && to > from
      ? page.slice(0, from) + block + page.slice(to + END.length)
      : `${page.trimEnd()}\n\n${block}\n`;
  writeFileSync(file, whole);
}
