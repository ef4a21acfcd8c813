// Records the specimens in tests/corpus/imports: installs the programs from npm, lets each talk to our fake provider on loopback, and keeps the
// session files that it wrote. `npx node -C @tapetree/source tests/proofs/import/record.ts [--programs <folder>] [name …]`.
// With `unshare --net` and the loopback device up, nothing but loopback can be reached after the installation.
import { spawn } from 'node:child_process'
import { existsSync, globSync, realpathSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { startFakeProvider, type FakeProvider } from '@tapetree/agent/testing'
import { sourceNames, type SourceName } from '../../../packages/cli/src/import/import-source.ts'
import { npm } from '../../../scripts/release/packages.ts'
import { picture } from './picture.ts'
import { programs, type Stage } from './programs.ts'
import { shortened, withoutPaths } from './shortened.ts'

const corpus = join(import.meta.dirname, '../../corpus/imports')

const { values, positionals } = parseArgs({ options: { programs: { type: 'string' } }, allowPositionals: true })
const chosen = sourceNames.filter((name) => positionals.length === 0 || positionals.includes(name))
for (const name of chosen) {
  const folder = await mkdtemp(join(tmpdir(), 'import-'))
  await using provider = await startFakeProvider({ strict: false })
  try {
    await record(name, folder, provider)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function record(name: SourceName, folder: string, provider: FakeProvider): Promise<void> {
  const program = programs[name]
  const installed = join(values.programs ?? folder, `${name}-program`)
  if (!existsSync(join(installed, 'node_modules'))) {
    await mkdir(installed, { recursive: true })
    await writeFile(join(installed, 'package.json'), '{"private":true}')
    await npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', program.package], { cwd: installed })
  }
  const [home, project] = [join(folder, 'home'), join(folder, 'project')]
  await mkdir(home, { recursive: true })
  await mkdir(project, { recursive: true })
  await writeFile(join(project, 'notes.md'), '# Notes\nThe cache is keyed by path.\n')
  await writeFile(join(project, 'picture.png'), picture)
  const [binary] = program.binaries.flatMap((pattern) => globSync(join(installed, 'node_modules', pattern)))
  if (binary === undefined) throw new Error(`${program.package} has no program.`)
  const run: Stage['run'] = (args, { input, isOpen = false, timeoutMs = 60_000, until } = {}) =>
    start(binary, args, {
      cwd: project,
      env: environment(home, program.env(provider)),
      input,
      isOpen,
      timeoutMs,
      until,
    })
  await program.play({ home, project, provider, run })
  const place = join(corpus, name)
  await rm(place, { recursive: true, force: true })
  await mkdir(place, { recursive: true })
  const from = { home, project, folder, installed: realpathSync(installed) }
  for (const [path, text] of Object.entries(await program.files({ home, project, provider, run }))) {
    const target = join(place, withoutPaths(relative(home, join(home, path)), from))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, withoutPaths(shortened(text, path), from))
  }
  const version = (JSON.parse(await readFile(join(installed, 'package-lock.json'), 'utf8')) as Lock).packages
  const packageName = program.package.replace(/(?!^)@.*$/, '')
  console.log(`${name}: recorded with ${packageName} ${version[`node_modules/${packageName}`]?.version}`)
}

interface Lock {
  packages: Record<string, { version?: string }>
}

function environment(home: string, env: Record<string, string>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', TERM: 'dumb', LANG: 'C.UTF-8', HOME: home, ...env }
}

interface StartOptions {
  cwd: string
  env: Record<string, string>
  input: string | undefined
  isOpen: boolean
  timeoutMs: number
  until: Promise<unknown> | undefined
}

/** Resolves with the output when the program has ended, or was ended. */
async function start(
  binary: string,
  args: readonly string[],
  { cwd, env, input, isOpen, timeoutMs, until }: StartOptions,
): Promise<string> {
  const child = spawn(binary, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  let output = ''
  child.stdout.on('data', (data: Buffer) => (output += data.toString()))
  child.stderr.on('data', (data: Buffer) => (output += data.toString()))
  child.stdin.on('error', () => undefined)
  child.stdin.write(input ?? '')
  if (!isOpen) child.stdin.end()
  const end = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  const timer = setTimeout(end, timeoutMs)
  void until?.then(end)
  await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  return output
}
