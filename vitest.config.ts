import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { CountReporter } from './scripts/count-reporter.ts'
import { testProjects } from './scripts/test-projects.ts'

// The many programs that tests start from their sources keep what they compiled: that is two thirds of the time they take to start.
// Coverage counts exactly only in code that was compiled anew.
if (!process.argv.includes('--coverage')) {
  process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')
}

const conditions = ['@tapetree/source', 'module', 'node', 'development|production']
const { unit, system } = testProjects()

const common = { resolve: { conditions }, ssr: { resolve: { conditions } } }
// A busy machine is slow, not wrong.
const timing = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 30_000 } },
  setupFiles: [join(import.meta.dirname, 'scripts/patient-tests.ts')],
  execArgv: ['-C', '@tapetree/source'],
}

export default defineConfig({
  ...common,
  test: {
    globalSetup: ['scripts/canary-search.ts'],
    maxWorkers: '100%',
    reporters: ['default', new CountReporter()],
    projects: [
      // Test files of one worker share its modules, so each module is loaded once.
      { ...common, test: { ...timing, name: 'unit', include: unit, isolate: false } },
      {
        ...common,
        test: {
          ...timing,
          name: 'system',
          include: system,
          isolate: false,
          globalSetup: ['scripts/build-cli-once.ts'],
        },
      },
    ],
    coverage: {
      provider: 'v8',
      include: ['packages/session/src/stores/**/*.ts'],
      // The tests of the PostgreSQL store need a server, which not every machine has.
      exclude: ['**/*.test.ts', 'packages/session/src/stores/postgres/**'],
      reporter: ['text', 'html'],
      thresholds: { branches: 100 },
    },
  },
})
