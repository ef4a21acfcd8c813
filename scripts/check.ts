// Checks what has changed, within a minute: `npm run check` or `npm run check -- <paths>`.
// Format, lint and tests are for the changed files; types, arrows and leaks are for everything, because they are quick.
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { changedFiles } from './changed-files.ts'
import { type Check, report, runCheck } from './run-checks.ts'
import { testProjects } from './test-projects.ts'
import { testsNear } from './tests-near.ts'
import { UsedFiles } from './used-files.ts'

async function check(paths: string[]): Promise<boolean> {
  const named = paths.map((path) => relative('.', path))
  const missing = named.filter((path) => !existsSync(path))
  if (missing.length > 0) {
    console.error(`There is no ${missing.join(', ')}. Pass paths of files that exist.`)
    return false
  }
  const changed = named.length > 0 ? named : changedSinceMain()
  if (changed.length === 0) {
    console.log('Nothing differs from main. Pass paths to check them, or run `npm run verify` to check everything.')
    return true
  }
  const files = changed.filter((file) => existsSync(file))
  const { selected, left } = testsNear(changed, new UsedFiles(), testProjects())
  console.log(`Changed files: ${changed.length}. Test files nearest to them: ${selected.length}.`)
  const results = await Promise.all(checksFor(files, selected).map(runCheckAndShowFailure))
  const passed = report(results)
  if (left > 0) console.log(`${left} more test files use the change; \`npm run verify\` runs them.`)
  return passed
}

/** Against main as the server has it, or as it is here. */
function changedSinceMain(): string[] {
  return changedFiles({ bases: ['origin/main', 'main', 'HEAD'] }) ?? []
}

function checksFor(files: readonly string[], tests: readonly string[]): Check[] {
  const sources = files.filter((file) => /\.[cm]?[jt]s$/.test(file))
  const checks: Check[] = [
    {
      name: 'format',
      command: `oxfmt --check --no-error-on-unmatched-pattern ${quoted(files)}`,
      advice: 'run `npm run format`',
    },
    { name: 'types', command: 'tsc -b', advice: 'fix the errors above' },
    { name: 'arrows', command: 'node scripts/check-arrows.ts', advice: 'see the arrows in AGENTS.md' },
    { name: 'leaks', command: 'node scripts/check-leaks.ts', advice: 'remove what it found from the files' },
  ]
  if (sources.length > 0) {
    checks.push({
      name: 'lint',
      command: `oxlint --type-aware --deny-warnings ${quoted(sources)}`,
      advice: 'fix the errors above; `npx oxlint --fix` can do some of it',
    })
  }
  if (tests.length > 0) {
    checks.push({
      name: 'tests',
      command: `NO_COLOR=1 vitest run --reporter=dot ${quoted(tests)}`,
      advice: 'run one file again with `npx vitest run <file>`',
    })
  }
  return checks
}

async function runCheckAndShowFailure(step: Check): ReturnType<typeof runCheck> {
  const result = await runCheck(step)
  if (!result.ok) console.log(`> ${step.name}\n${result.output.trimEnd()}`)
  return result
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
}

process.exitCode = (await check(process.argv.slice(2))) ? 0 : 1
