import { defineConfig } from 'vitest/config'

const shared = { pool: 'forks', testTimeout: 30_000, hookTimeout: 60_000 } as const

/** Two projects, so that `vitest --project unit` needs no database; everything else shares one PostgreSQL server. */
export default defineConfig({
  test: {
    maxWorkers: 2,
    // the account of the run, for scripts/test-count.mjs
    reporters: ['default', ['json', { outputFile: 'node_modules/.cache/test-results.json' }]],
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['tests/{unit,properties}/**/*.test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'database',
          include: ['tests/**/*.test.ts'],
          exclude: ['tests/{unit,properties}/**'],
          globalSetup: ['tests/support/global-setup.ts'],
        },
      },
    ],
  },
})
