import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { entryOf, type Selection, selectSteps, type Step, stepsOf } from './select-steps.ts'
import { UsedFiles } from './used-files.ts'

const verify: Step = { name: 'verify', kind: 'check', budgetSeconds: 300, command: 'npm run verify' }
const proofs = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta'].map(proofNamed)

test('a step runs if a file that its program uses has changed, and names that file', () => {
  const choices = select({ changed: ['shared.ts', 'tests/proofs/beta/child.ts'] })
  expect(choices['beta']).toEqual({ name: 'beta', runs: true, reason: 'touched: tests/proofs/beta/child.ts' })
})

test('a third of the steps that are not touched runs, and the same third for the same seed', () => {
  const drawn = (seed: number): string[] => namesThatRun(select({ seed, changed: ['README.md'] }))
  expect(drawn(1)).toHaveLength(3)
  expect(drawn(1)).toEqual(drawn(1))
  expect(new Set(Array.from({ length: 40 }, (_, seed) => drawn(seed)).flat())).toEqual(
    new Set(proofs.map((p) => p.name)),
  )
})

test('a change of the lock file or of the version of Node touches every step', () => {
  expect(namesThatRun(select({ changed: ['package-lock.json'] }))).toHaveLength(proofs.length)
  expect(namesThatRun(select({ changed: ['.node-version'] }))).toHaveLength(proofs.length)
})

test('every step counts as touched if the changes or its program are unknown', () => {
  expect(namesThatRun(select({ changed: undefined }))).toHaveLength(proofs.length)
  const strange: Step = { name: 'strange', kind: 'proof', budgetSeconds: 10, command: 'bash something' }
  expect(select({ steps: [verify, strange], changed: [] })['strange']?.runs).toBe(true)
})

test('--all runs every step, whatever the limit', () => {
  expect(namesThatRun(select({ changed: [], all: true, limitSeconds: 1 }))).toHaveLength(proofs.length)
})

test('a Markdown file in the folder of a used source touches the step', () => {
  expect(select({ changed: ['packages/agent/src/tools/builtin/bash.md'] })['alpha']?.runs).toBe(true)
})

test('what runs stays within the limit, and a step that uses the change more directly goes first', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2 ** 28 }),
      fc.integer({ min: 0, max: 1_000 }),
      fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 7, maxLength: 7 }),
      (seed, limitSeconds, distances) => {
        const usedBy: Selection['usedBy'] = (entry) =>
          new Map([['changed.ts', distances[proofs.findIndex((proof) => entryOf(proof) === entry)] ?? 0]])
        const names = namesThatRun(select({ seed, limitSeconds, changed: ['changed.ts'], usedBy }))
        // Two proofs of 100 s run at a time, and each takes 0.7 of its budget.
        expect(names.length).toBe(Math.min(7, Math.max(0, Math.floor((limitSeconds - 300 * 0.7 + 1e-6) / 35))))
        const farthest = Math.max(0, ...distancesOf(names, distances))
        const left = proofs.map(({ name }) => name).filter((name) => !names.includes(name))
        for (const distance of distancesOf(left, distances)) expect(distance).toBeGreaterThanOrEqual(farthest)
      },
    ),
  )
})

test('every proof and bench in the table of .ci/run has a program, and every program is in the table', () => {
  const steps = stepsOf(readFileSync('.ci/run', 'utf8')).filter(({ kind }) => kind !== 'check')
  const entries = steps.map(entryOf)
  expect(entries.filter((entry) => entry === undefined || !existsSync(entry))).toEqual([])
  const listed = execFileSync('git', ['ls-files', 'tests/proofs/*.ts', 'bench/*.ts'], { encoding: 'utf8' })
  const programs = listed.split('\n').filter((file) => /^(tests\/proofs|bench)\/[^/]+(?<!\.test)\.ts$/.test(file))
  expect(new Set(entries)).toEqual(new Set(programs))
})

test('a program uses what it imports, the programs it starts, its folder and the sources of the bundle', () => {
  const files = new UsedFiles()
  const writers = files.of('tests/proofs/two-writers.ts')
  expect([...writers.keys()]).toEqual(
    expect.arrayContaining(['tests/proofs/two-writers/worker.ts', 'packages/session/src/index.ts']),
  )
  expect([...writers.keys()].filter((file) => file.startsWith('packages/agent/'))).toEqual([])
  expect([...files.of('tests/proofs/terminal.ts').keys()]).toContain('packages/cli/src/main.ts')
  expect([...files.of('tests/proofs/install-size.ts').keys()]).toContain('packages/session/package.json')
})

function select(options: Partial<Selection>): Record<string, { name: string; runs: boolean; reason: string }> {
  const choices = selectSteps({
    steps: [verify, ...proofs],
    changed: [],
    seed: 1,
    usedBy: (entry) =>
      new Map([
        [entry, 0],
        [entry.replace('.ts', '/child.ts'), 1],
        ...(entry.includes('alpha') ? [['packages/agent/src/tools/builtin/bash.ts', 2] as const] : []),
      ]),
    ...options,
  })
  return Object.fromEntries(choices.map((choice) => [choice.name, choice]))
}

function namesThatRun(choices: ReturnType<typeof select>): string[] {
  return Object.values(choices).flatMap(({ name, runs }) => (runs ? [name] : []))
}

function distancesOf(names: readonly string[], distances: readonly number[]): number[] {
  return names.map((name) => distances[proofs.findIndex((proof) => proof.name === name)] ?? 0)
}

function proofNamed(name: string): Step {
  return { name, kind: 'proof', budgetSeconds: 100, command: `npm run proof ${name}` }
}
