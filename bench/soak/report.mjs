// The result as a Markdown table, printed and, where asked, put between the markers of a page.
import { readFileSync, writeFileSync } from 'node:fs';

export function table(rows) {
  const lines = ['| what | measured | must be | |', '| --- | --- | --- | --- |'];
  for (const { what, measured, must = '', ok } of rows) {
    lines.push(`| ${what} | ${measured} | ${must} | ${ok === undefined ? '' : ok ? 'ok' : '**no**'} |`);
  }
  return lines.join('\n');
}

export function must(what, measured, value) {
  return { what, measured, must: String(value), ok: measured === value };
}

export function counted(counts) {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return entries.map(([name, count]) => `${name} ${count}`).join(', ');
}

/** Replaces what stands between the markers; a page without them gets them at its end. */
export function writeBetweenMarkers(file, text, name) {
  const begin = `<!-- ${name}:begin -->`;
  const end = `<!-- ${name}:end -->`;
  let page = '';
  try {
    page = readFileSync(file, 'utf8');
  } catch {
    page = '# Reliability\n';
  }
  const block = `${begin}\n${text}\n${end}`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  const whole =
    from >= 0 && to > from
      ? page.slice(0, from) + block + page.slice(to + end.length)
      : `${page.trimEnd()}\n\n${block}\n`;
  writeFileSync(file, whole);
}
