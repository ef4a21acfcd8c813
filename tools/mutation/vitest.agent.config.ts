import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'

// The tests that run against every mutant of the run and of the permissions.
const root = resolve(import.meta.dirname, '../..')
const conditions = ['@tapetree/source', 'module', 'node', 'development|production']
const both = '{run,permissions}'
const scope = process.env['SCOPE'] ?? both

export default defineConfig({
  root,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      `packages/agent/src/${scope}/**/*.test.ts`,
      `packages/agent/src/${scope}.test.ts`,
      // Sessions start their runs through `run-slot`.
      ...(scope.includes('run')
        ? ['packages/agent/src/agent/{agent-session,one-session,permission-mode,reply}.test.ts']
        : []),
    ],
    exclude: [
      // It kills processes that it starts, which import the unmutated sources.
      '**/run/draft-kill.test.ts',
      // These start git and try thousands of commands: minutes for each mutant of code that every command passes.
      ...(scope === both ? [] : ['**/permissions/shell/{planted,corpora}.test.ts', '**/git-repository.test.ts']),
    ],
    execArgv: ['-C', '@tapetree/source'],
    testTimeout: 30_000,
  },
})
