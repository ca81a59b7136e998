import { describe, expect, it } from 'vitest';
import { markFaults } from './plugin-marks.js';

const ID = '"id" must be a text that is not empty, of one line';
const ORDER = '"order" must be a number, such as Order.shape (500)';

describe('markFaults', () => {
  it('has nothing to say of what is right', () => {
    expect(markFaults('interceptor', { id: 'a b', order: -1.5, config: class {} }, 'A')).toEqual([]);
    expect(markFaults('interceptor', { id: 'Ж', order: undefined }, 'A')).toEqual([]);
    expect(markFaults('classifier', { id: 'a', order: 0 }, 'A')).toEqual([]);
    expect(markFaults('policy', 'cheapest', 'A')).toEqual([]);
  });

  it.each<[unknown, string[]]>([
    [{}, [ID]],
    [{ id: '' }, [ID]],
    [{ id: ' ' }, [ID]],
    [{ id: 5 }, [ID]],
    [{ id: 'a\nb' }, [ID]],
    [{ id: 'a', order: NaN }, [ORDER]],
    [{ id: 'a', order: Infinity }, [ORDER]],
    [{ id: 'a', order: 'first' }, [ORDER]],
    [{ order: null }, [ID, ORDER]],
  ])('names the class and what would be right: %j', (mark, faults) => {
    expect(markFaults('interceptor', mark, 'Mine')).toEqual(
      faults.map((fault) => `@RegisterInterceptor of the class Mine: ${fault}`),
    );
    expect(markFaults('classifier', mark, 'Mine')).toEqual(
      faults.map((fault) => `@RegisterErrorClassifier of the class Mine: ${fault}`),
    );
  });

  it.each([undefined, null, 'a', 5])('wants options: %j', (mark) => {
    expect(markFaults('interceptor', mark, 'Mine')).toEqual([
      "@RegisterInterceptor of the class Mine needs options: at least { id: 'a-name' }",
    ]);
  });

  it('wants a class for a config, and a name for a policy', () => {
    expect(markFaults('interceptor', { id: 'a', config: 5 }, 'Mine')).toEqual([
      '@RegisterInterceptor of the class Mine: "config" must be a class',
    ]);
    for (const name of [undefined, '', 5, {}])
      expect(markFaults('policy', name, 'Mine')).toEqual([
        '@RegisterRoutingPolicy of the class Mine: the name must be a text that is not empty, of one line',
      ]);
  });
});
