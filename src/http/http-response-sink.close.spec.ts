import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { sinkScene } from '../../test/support/sink-scene.js';
import { HttpResponseSink } from './http-response-sink.js';

const scene = sinkScene();
const { opened, one, answering: ANSWERING } = scene;

describe('HttpResponseSink, the last resort', () => {
  it('closes before the head with a plain 500', async () => {
    const { sink, answer } = await one();
    sink.close();
    sink.close();
    await answer.end();
    expect([answer.status, answer.ending, answer.header('x-request-id')]).toEqual([500, 'complete', 'r1']);
    expect(answer.json).toMatchObject({ error: { code: 'internal_error' } });
  });

  it('closes behind the head by breaking the connection', async () => {
    const { sink, answer } = await one();
    sink.head(200, []);
    sink.write(Buffer.from('a'));
    await answer.saw('a');
    sink.close();
    await answer.end();
    expect([answer.status, answer.ending]).toEqual([200, 'cut']);
  });

  it('closes nothing that has an end, and what waits behind another answer', async () => {
    const { sinks, answers } = await opened(2);
    sinks[1]?.close();
    sinks[0]?.head(200, []);
    sinks[0]?.end(Buffer.from('whole'));
    sinks[0]?.close();
    for (const answer of answers) await answer.end();
    expect(answers.map(({ status, ending }) => [status, ending])).toEqual([
      [200, 'complete'],
      [500, 'complete'],
    ]);
    expect(answers[0]?.text).toBe('whole');
  });

  it('breaks the connection where not even the plain 500 can be written', async () => {
    const { answers } = await opened();
    const [response] = scene.responses;
    new HttpResponseSink(response as ServerResponse, { ...ANSWERING, headers: ['x', 'a\nb'] }).close();
    await answers[0]?.end();
    expect([answers[0]?.status, answers[0]?.ending]).toEqual([0, 'cut']);
  });
});
