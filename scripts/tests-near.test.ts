import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { testProjects } from './test-projects.ts'
import { testsNear } from './tests-near.ts'
import { UsedFiles } from './used-files.ts'

const files = new UsedFiles()
const projects = testProjects()

test('a changed test comes first, then the tests that import the changed file, then those farther away', () => {
  const { selected, left } = near('packages/session/src/state/inbox.ts', 'scripts/figure/gate.test.ts')
  expect(selected[0]).toBe('scripts/figure/gate.test.ts')
  expect(selected.slice(0, 6)).toContain('packages/session/src/state/inbox.test.ts')
  expect(left).toBeGreaterThan(20)
})

test('a page is a change for the test that reads it', () => {
  expect(near('docs/reference/settings.md').selected).toContain('packages/agent/src/api-doc.test.ts')
})

test('a system test is selected if it or what it imports has changed', () => {
  expect(near('tests/terminal/tree.test.ts').selected).toContain('tests/terminal/tree.test.ts')
  expect(near('tests/terminal/chat.ts').selected).toContain('tests/terminal/answers.test.ts')
})

test('tests that use nothing of the change are left out', () => {
  expect(near('packages/cli/src/main.ts').selected).not.toContain('packages/session/src/state/inbox.test.ts')
  expect(near('LICENSE')).toEqual({ selected: [], left: 0 })
})

test('every test file belongs to one project, and those that start a terminal or the command are system tests', () => {
  const all = [...projects.unit, ...projects.system]
  expect(new Set(all).size).toBe(all.length)
  expect(all.filter((file) => !existsSync(file))).toEqual([])
  expect(files.matching(/^(packages\/[^/]+\/src|scripts|tests|examples)\/(?!fixtures\/).*\.test\.ts$/).sort()).toEqual(
    all.sort(),
  )
  expect(projects.system).toEqual(
    expect.arrayContaining(['tests/terminal/answers.test.ts', 'packages/cli/src/main.test.ts']),
  )
})

function near(...changed: string[]): ReturnType<typeof testsNear> {
  return testsNear(changed, files, projects)
}
