import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/tooling/fixtures/**'],
    globalSetup: 'test/support/fresh-place.ts',
    pool: 'forks',
    maxWorkers: 2,
    retry: 0,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // One second by default, which a busy machine takes for a webhook.
    expect: { poll: { timeout: 10_000 } },
  },
})
