import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.spec.ts', 'test/**/*.spec.ts', 'test/**/*.e2e-spec.ts', 'examples/**/*.spec.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
