// Divides the tests: those that start processes, servers or terminals are system tests, the rest are unit tests.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { withSlashes } from './import-graph.ts'

const testFiles = ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts', 'tests/**/*.test.ts', 'examples/**/*.test.ts']
const notTests = ['**/node_modules/**', '**/dist/**', 'tests/fixtures/**']

/** What the text of a test, or of a helper that it imports, has in it if it starts something. */
const startsSomething =
  /node:(?:child_process|worker_threads|net|http)'|node-pty|\.listen\(|\b(?:start(?:Server|FakeProvider|Terminal)|runCommand|spawnTool)\w*\(|\/(?:terminal|bundled-command)\.ts'/

export interface TestProjects {
  unit: string[]
  system: string[]
}

/** Every test file, in one of the two. */
export function testProjects(): TestProjects {
  const files = globSync(testFiles, { exclude: notTests }).map(withSlashes).sort()
  const isSystem = (file: string): boolean =>
    [file, ...helpersOf(file)].some((path) => startsSomething.test(textOf(path)))
  return { unit: files.filter((file) => !isSystem(file)), system: files.filter(isSystem) }
}

/** Files beside tests are helpers in `tests`, and in the `testing` folders of packages. */
function helpersOf(test: string): string[] {
  const imports = textOf(test).matchAll(/from '(\.[^']+\.ts)'/g)
  return [...imports]
    .map(([, specifier = '']) => withSlashes(join(dirname(test), specifier)))
    .filter((file) => file.startsWith('tests/') || file.includes('/testing/'))
}

const texts = new Map<string, string>()

function textOf(file: string): string {
  const text = texts.get(file) ?? readFileSync(file, 'utf8')
  texts.set(file, text)
  return text
}
