import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { installCommand } from '../support/install-command.ts'
import { installedPackages } from './install-size/installed-packages.ts'

export const name = 'cli-size'
export const claim = 'The installed command is at most 40 MB and 30 packages, and runs no install scripts.'

const limits = { packages: 30, megabytes: 40 }

/** Packs the command as it would be published, installs it alone into an empty folder, and works with it from there. */
export async function run({ say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const folder = await temporaryFolder()
  const command = await installCommand(folder)
  const packages = await installedPackages(folder)
  const bytes = packages.reduce((sum, each) => sum + each.bytes, 0)
  const megabytes = Math.round(bytes / 1e5) / 10
  say(`${packages.length} packages, ${megabytes} MB`)
  for (const { name: large, bytes: own } of packages.slice(0, 8)) say(`  ${Math.round(own / 1e5) / 10} MB ${large}`)
  const problems = [
    ...(packages.length > limits.packages ? [`there are more than ${limits.packages} packages`] : []),
    ...(megabytes > limits.megabytes ? [`there are more than ${limits.megabytes} MB`] : []),
    ...(await installScripts(folder)),
    ...(await missingLicences(folder)),
    ...(await firstUse(command)),
  ]
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return { ok: problems.length === 0, figures: { packages: packages.length, megabytes, problems: problems.length } }
}

const execute = promisify(execFile)

async function installScripts(folder: string): Promise<string[]> {
  const lock = JSON.parse(await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Record<string, { hasInstallScript?: boolean }>
  }
  return Object.entries(lock.packages).flatMap(([place, { hasInstallScript }]) =>
    hasInstallScript ? [`${place} has an install script`] : [],
  )
}

/** Of what the bundle holds; one package stands for all. */
async function missingLicences(folder: string): Promise<string[]> {
  const file = join(folder, 'node_modules/@tapetree/cli/dist/bin/licences.txt')
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.includes('\nzod ') ? [] : ['the licences of the bundled packages are not in it']
}

/** The version, and a run whose model calls a command and a search: they need what is not in the bundle. */
async function firstUse(command: string): Promise<string[]> {
  await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  const { version } = JSON.parse(await readFile('packages/cli/package.json', 'utf8')) as { version: string }
  const use = (...args: string[]): Promise<string> => {
    const running = execute(process.execPath, [command, ...args], { cwd: home.cwd, env: home.env, timeout: 60_000 })
    running.child.stdin?.end()
    return running.then(
      ({ stdout }) => stdout,
      (error: Error) => error.message,
    )
  }
  const printed = await use('--version')
  await mkdir(join(home.cwd, 'notes'))
  await writeFile(join(home.cwd, 'notes', 'one.txt'), 'a needle\n')
  const call = (tool: string, input: object) => ({
    type: 'answer' as const,
    content: [{ type: 'tool_call' as const, id: `call-${tool}`, name: tool, chunks: [JSON.stringify(input)] }],
  })
  home.provider.script(call('bash', { command: 'echo from-bash' }), call('grep', { pattern: 'needle' }), {
    type: 'answer',
    content: [{ type: 'text', chunks: ['All done.'] }],
  })
  const answer = await use('run', 'Look around')
  const sent = JSON.stringify(home.provider.requests.at(-1)?.body ?? '')
  return [
    ...(printed === `${version}\n` ? [] : [`--version printed ${printed}`]),
    ...(answer === 'All done.\n' ? [] : [`run printed ${answer}`]),
    ...['from-bash', 'a needle'].filter((result) => !sent.includes(result)).map((result) => `no tool gave ${result}`),
  ]
}
