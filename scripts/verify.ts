// Runs every check, also after one has failed, and prints how long each took. The static checks run one after another beside the tests.
import { readFileSync } from 'node:fs'
import { type Check, type CheckResult, report, runCheck } from './run-checks.ts'

const advice: Record<string, string> = {
  'format:check': 'run `npm run format`',
  unused: 'remove the export, file or dependency, or use it',
}
/** The longest first, so that no single one is left when the tests are over. */
const staticChecks = ['lint', 'types', 'unused', 'arrows', 'format:check', 'leaks', 'lockcheck']

async function verify(): Promise<void> {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const checkOf = (name: string): Check => ({
    name,
    command: scripts[name] ?? `echo no script ${name} && exit 1`,
    advice: advice[name] ?? `run \`npm run ${name}\` alone to see it again`,
  })
  const tests = runCheck(checkOf('test'), { isShown: true })
  const results: CheckResult[] = []
  for (const name of staticChecks) {
    const result = await runCheck(checkOf(name))
    console.log(`> ${name}: ${result.check.command}\n${result.output.trimEnd()}`)
    results.push(result)
  }
  results.push(await tests)
  process.exitCode = report(results) ? 0 : 1
}

await verify()
