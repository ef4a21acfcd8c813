import type { TestProjects } from './test-projects.ts'
import type { UsedFiles } from './used-files.ts'

/** So many unit tests and system tests run in less than a minute. */
const maxUnitTests = 40
const maxSystemTests = 4
/** A system test that uses the change less directly than this is left to `npm run verify`. */
const maxSystemDistance = 1

export interface NearTests {
  /** The nearest first. */
  selected: string[]
  /** Test files that use the change and were not selected. */
  left: number
}

/** Selects the test files that use the changed files most directly. */
export function testsNear(changed: readonly string[], files: UsedFiles, projects: TestProjects): NearTests {
  const near = (tests: readonly string[]): { test: string; distance: number }[] =>
    tests
      .map((test) => ({ test, distance: distanceOf(changed, files.of(test)) }))
      .filter(({ distance }) => distance < Infinity)
      .sort((a, b) => a.distance - b.distance || (a.test < b.test ? -1 : 1))
  const [unit, system] = [near(projects.unit), near(projects.system)]
  const selected = [
    ...unit.slice(0, maxUnitTests),
    ...system.filter(({ distance }) => distance <= maxSystemDistance).slice(0, maxSystemTests),
  ]
  return { selected: selected.map(({ test }) => test), left: unit.length + system.length - selected.length }
}

function distanceOf(changed: readonly string[], used: ReadonlyMap<string, number>): number {
  return Math.min(Infinity, ...changed.map((file) => used.get(file) ?? Infinity))
}
