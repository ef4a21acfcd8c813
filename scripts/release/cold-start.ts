import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { npmEnvironment } from './packages.ts'

export interface ColdStart {
  firstLineSeconds: number
  seconds: number
  exitCode: number | null
  /** Everything that the command wrote to its standard output. */
  output: string
  errors: string
}

export interface NewUser {
  home: string
  cwd: string
  env: NodeJS.ProcessEnv
}

/** Somebody with an empty home, an empty folder and an empty npm cache, who installs from the given registry. */
export async function newUser(folder: string, registry: string): Promise<NewUser> {
  const [home, cwd] = [join(folder, 'home'), join(folder, 'empty')]
  for (const each of [home, cwd]) await mkdir(each, { recursive: true })
  const { PATH = '' } = process.env
  const env = {
    ...networkSettings(),
    HOME: home,
    PATH: [dirname(process.execPath), PATH].join(delimiter),
    npm_config_registry: registry,
    npm_config_prefix: join(home, 'global'),
    npm_config_cache: join(home, '.npm'),
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  }
  return { home, cwd, env }
}

/** What this machine needs to reach other machines. */
function networkSettings(): NodeJS.ProcessEnv {
  const names = /^(?:https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(?:file|dir))$/i
  return Object.fromEntries(Object.entries(npmEnvironment()).filter(([name]) => names.test(name)))
}

/** Runs `npx tapetree tour --fast` as the first command of a new user. */
export async function coldStart({ cwd, env }: NewUser): Promise<ColdStart> {
  const begun = performance.now()
  const child = spawn('npx', ['--yes', 'tapetree', 'tour', '--fast'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const closed = once(child, 'close') as Promise<[number | null]>
  const lines: string[] = []
  let firstLineSeconds = Infinity
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.trim() !== '' && firstLineSeconds === Infinity) firstLineSeconds = secondsSince(begun)
    lines.push(line)
  }
  const [exitCode] = await closed
  return { firstLineSeconds, seconds: secondsSince(begun), exitCode, output: lines.join('\n'), errors }
}

function secondsSince(begun: number): number {
  return Math.round((performance.now() - begun) / 100) / 10
}
