// Mutates a seeded sample of the run and of the permissions: every 25 lines are one stretch, and SHARE of all stretches are
// tried. `SCOPE=permissions` samples only that folder, or that file without `.ts`, and runs only its own quick tests.
import { randomFrom } from '@tapetree/session/testing'
import { globSync, readFileSync } from 'node:fs'
import base from './stryker.config.json' with { type: 'json' }

const { SHARE = '0.04', SEED = '1', SCOPE = '{run,permissions}' } = process.env
const stretchLines = 25

const random = randomFrom(Number(SEED))
const files = globSync([`packages/agent/src/${SCOPE}/**/*.ts`, `packages/agent/src/${SCOPE}.ts`], {
  exclude: ['**/*.test.ts', '**/testing/**'],
}).toSorted()
const mutate = files.flatMap((file) => {
  const lines = readFileSync(file, 'utf8').split('\n').length
  const starts = Array.from({ length: Math.ceil(lines / stretchLines) }, (_, index) => index * stretchLines + 1)
  return starts
    .filter(() => random() < Number(SHARE))
    .map((start) => `${file}:${start}-${Math.min(lines, start + stretchLines - 1)}`)
})

export default {
  ...base,
  mutate,
  vitest: { configFile: 'tools/mutation/vitest.agent.config.ts', related: true },
  incremental: false,
  // A run starts timers and sessions; on a busy machine a test takes seconds.
  timeoutMS: 30_000,
  thresholds: { ...base.thresholds, break: null },
}
