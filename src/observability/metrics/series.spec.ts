import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { CounterFamily, HistogramFamily } from './series.js';

describe('CounterFamily', () => {
  it('gives the same series for the same labels, and prints all of them', async () => {
    const registry = new Registry();
    const family = new CounterFamily(registry, 'c_total', 'help', ['a', 'b']);
    family.with('1', '2').add();
    family.with('1', '2').add(2.5);
    family.with('1', '3').add(0);
    expect(family.with('1', '2')).toBe(family.with('1', '2'));
    expect(await registry.metrics()).toBe(
      '# HELP c_total help\n# TYPE c_total counter\nc_total{a="1",b="2"} 3.5\nc_total{a="1",b="3"} 0\n',
    );
  });

  it('keeps labels apart that look alike when joined, and escapes what would forge a line', async () => {
    const registry = new Registry();
    const family = new CounterFamily(registry, 'c_total', 'help', ['a', 'b']);
    family.with('x,y', 'z').add(1);
    family.with('x', 'y,z').add(2);
    family.with('q"\\\nforged 1', '\ud800').add(3);
    const lines = (await registry.metrics()).trimEnd().split('\n').slice(2);
    expect(lines).toEqual([
      'c_total{a="x,y",b="z"} 1',
      'c_total{a="x",b="y,z"} 2',
      'c_total{a="q\\"\\\\\\nforged 1",b="\ufffd"} 3',
    ]);
  });

  it('takes the names of members of every object as labels', async () => {
    const registry = new Registry();
    const family = new CounterFamily(registry, 'c_total', 'help', ['a']);
    family.with('__proto__').add();
    family.with('constructor').add();
    expect(await registry.metrics()).toContain('c_total{a="__proto__"} 1\nc_total{a="constructor"} 1');
  });
});

describe('HistogramFamily', () => {
  it('counts each observation in every bucket that holds it, sum and count beside', async () => {
    const registry = new Registry();
    const family = new HistogramFamily(registry, 'h_seconds', 'help', ['a'], [0.1, 1]);
    const series = family.with('x');
    for (const value of [0.05, 0.1, 0.5, 1, 7]) series.observe(value);
    const lines = (await registry.metrics()).trimEnd().split('\n').slice(2);
    expect(lines).toEqual([
      'h_seconds_bucket{a="x",le="0.1"} 2',
      'h_seconds_bucket{a="x",le="1"} 4',
      'h_seconds_bucket{a="x",le="+Inf"} 5',
      'h_seconds_sum{a="x"} 8.65',
      'h_seconds_count{a="x"} 5',
    ]);
  });
});
