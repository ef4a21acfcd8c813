import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { packPackages } from '../../scripts/release/packages.ts'
import { faultsOf, stepsOf, type Step } from './deploy/containerfile.ts'

export const name = 'deploy'
export const claim =
  'The container file follows its rules and its steps give a server that is alive, and systemd accepts the unit files.'

const root = resolve(import.meta.dirname, '../..')
const execute = promisify(execFile)

/** Runs the steps of the container file in a root folder of their own, with bubblewrap instead of a container engine. */
export async function run({ say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const text = await readFile(join(root, 'deploy/Containerfile'), 'utf8')
  const steps = stepsOf(text)
  const problems = [...faultsOf(steps), ...missedFaults(text), ...(await checkUnits(say))]
  const box = await Sandbox.make(await temporaryFolder())
  const [archive] = await packPackages(box.shared, ['cli'])
  if (!archive) throw new Error('Nothing was packed.')
  box.build.set('PACKAGE', archive.file)
  for (const step of steps) {
    problems.push(...(await box.follow(step)))
    say(`${step.instruction} ${step.text.slice(0, 80)}`)
  }
  problems.push(...(await serveIn(box)))
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return { ok: problems.length === 0, figures: { steps: steps.length, problems: problems.length } }
}

/** Faults that the rules must find; otherwise they check nothing. */
function missedFaults(text: string): string[] {
  const broken = {
    'a base image without a version': text.replace(/:24[^\n]*/, ''),
    'a server that runs as root': text.replace('USER 1000:1000', 'USER root'),
    'readiness instead of liveness': text.replace("'/api/health'", "'/api/ready'"),
    'packages that are not needed': text.replace('--no-install-recommends ', ''),
  }
  return Object.entries(broken).flatMap(([fault, changed]) =>
    changed === text || faultsOf(stepsOf(changed)).length === 0 ? [`The rules missed ${fault}.`] : [],
  )
}

async function checkUnits(say: (line: string) => void): Promise<string[]> {
  const files = ['tapetree.service', 'tapetree-liveness.service', 'tapetree-liveness.timer']
  const paths = files.map((file) => join(root, 'deploy', file))
  return execute('systemd-analyze', ['verify', '--man=no', ...paths]).then(
    ({ stderr }) => (stderr === '' ? [] : [`systemd-analyze: ${stderr}`]),
    ({ code, stderr }: { code: unknown; stderr: string }) => {
      if (code !== 'ENOENT') return [`systemd-analyze: ${stderr}`]
      say('systemd is not installed here, so the unit files are not checked')
      return []
    },
  )
}

/** The file system and the environment that the steps change. */
class Sandbox {
  readonly #root: string
  /** Visible inside under the same path. */
  readonly shared: string
  readonly build = new Map<string, string>()
  readonly env = new Map([['PATH', '/usr/local/bin:/usr/bin:/bin']])
  user = '0:0'
  folder = '/'
  health: string[] = []
  command: string[] = []

  private constructor(folder: string) {
    this.#root = join(folder, 'root')
    this.shared = join(folder, 'shared')
  }

  static async make(folder: string): Promise<Sandbox> {
    const box = new Sandbox(folder)
    for (const each of ['tmp', 'opt', 'usr', 'etc', 'root', 'proc', 'dev', 'tools']) {
      await mkdir(join(box.#root, each), { recursive: true })
    }
    for (const each of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`usr/${each}`, join(box.#root, each))
    await mkdir(box.shared)
    return box
  }

  async follow({ instruction, text, args }: Step): Promise<string[]> {
    switch (instruction) {
      case 'ARG': {
        const [key = '', value = ''] = text.split('=')
        if (!this.build.has(key)) this.build.set(key, value)
        return []
      }
      case 'ENV': {
        const [key = '', value = ''] = text.split('=')
        this.env.set(key, value)
        return []
      }
      case 'USER':
        this.user = text
        return []
      case 'WORKDIR':
        this.folder = text
        return []
      case 'HEALTHCHECK':
        this.health = args
        return []
      case 'CMD':
        this.command = args
        return []
      case 'RUN':
        return text.startsWith('apt-get') ? [] : this.#run(text)
      default:
        return []
    }
  }

  async #run(text: string): Promise<string[]> {
    const env = new Map([...this.build, ...npmSettings()])
    return execute('bwrap', this.arguments(['sh', '-euc', text], env), { timeout: 120_000 }).then(
      () => [],
      ({ stderr }: { stderr: string }) => [`RUN ${text}: ${stderr}`],
    )
  }

  /** The system of this machine stands for the base image; node and npm are those of this process. */
  arguments(command: readonly string[], more: ReadonlyMap<string, string> = new Map()): string[] {
    const [uid = '0', gid = '0'] = this.user.split(':')
    const npmFolder = dirname(dirname(process.env['npm_execpath'] ?? '/usr/lib/node_modules/npm/bin/npm-cli.js'))
    const settings = npmSettings()
    const files = ['/usr', '/etc', npmFolder, settings.get('npm_config_userconfig') ?? '']
    const binds = files.filter((path) => path !== '' && existsSync(path)).flatMap((path) => ['--ro-bind', path, path])
    const cache = settings.get('npm_config_cache')
    if (cache !== undefined && existsSync(cache)) binds.push('--bind', cache, cache)
    const tools = ['--ro-bind', process.execPath, '/tools/node', '--ro-bind', this.shared, this.shared]
    const env = new Map([...more, ...this.env, ['HOME', '/tmp']])
    env.set('PATH', `/tools:${env.get('PATH') ?? ''}`)
    const variables = [...env].flatMap(([key, value]) => ['--setenv', key, value])
    const user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
    return [
      ...['--die-with-parent', '--bind', this.#root, '/', ...binds, ...tools, '--proc', '/proc', '--dev', '/dev'],
      ...['--chdir', this.folder, '--clearenv', ...variables, '--', ...user, ...command],
    ]
  }
}

/** How npm reaches its registry on this machine. */
function npmSettings(): Map<string, string> {
  const wanted = /^(?:npm_config_(?:userconfig|cache|cafile|registry|noproxy|proxy|https_proxy)|NODE_EXTRA_CA_CERTS)$/
  const known = Object.entries(process.env).filter(([key, value]) => wanted.test(key) && value !== '')
  return new Map(known.map(([key, value]) => [key, value ?? '']))
}

/** Starts the command of the container, checks its health as an engine does, and stops it. */
async function serveIn(box: Sandbox): Promise<string[]> {
  box.env.set('PORT', String(await freePort()))
  const server = spawn('bwrap', box.arguments(box.command), { stdio: ['ignore', 'pipe', 'pipe'] })
  let complaints = ''
  server.stderr.on('data', (text: Buffer) => (complaints += text.toString()))
  const ended = once(server, 'close') as Promise<[number | null, string | null]>
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]()
  const first = await lines.next()
  if (first.done) return [`The server ended: ${complaints}`]
  const health = await execute('bwrap', box.arguments(box.health)).then(
    () => [],
    ({ stderr }: { stderr: string }) => [`The health check failed: ${stderr}`],
  )
  // bwrap waits for the server and passes no signals on.
  const inside = Number(await readFile(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8'))
  const isRoot = /^Uid:\s+0\s/m.test(await readFile(`/proc/${inside}/status`, 'utf8'))
  process.kill(inside, 'SIGTERM')
  const [code, signal] = await ended
  return [
    ...health,
    ...(isRoot ? ['The server runs as root.'] : []),
    ...(code === 0 ? [] : [`The server ended with ${code ?? signal}: ${complaints}`]),
  ]
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
