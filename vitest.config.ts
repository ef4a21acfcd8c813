import { defineConfig } from 'vitest/config'
import { CountReporter } from './scripts/count-reporter.ts'

const conditions = ['@tapetree/source', 'module', 'node', 'development|production']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts', 'tests/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', 'tests/fixtures/**'],
    execArgv: ['-C', '@tapetree/source'],
    globalSetup: ['scripts/canary-search.ts', 'scripts/build-cli-once.ts'],
    // A busy machine is slow, not wrong.
    testTimeout: 30_000,
    reporters: ['default', new CountReporter()],
    coverage: {
      provider: 'v8',
      include: ['packages/session/src/stores/**/*.ts'],
      exclude: ['**/*.test.ts'],
      reporter: ['text', 'html'],
      thresholds: { branches: 100 },
    },
  },
})
