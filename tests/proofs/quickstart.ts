import { startFakeProvider } from '@tapetree/agent/testing'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { startTerminal, type Terminal } from '../terminal/terminal.ts'
import { dialogues } from './quickstart/dialogues.ts'
import { pageCommands } from './quickstart/page-commands.ts'

export const name = 'quickstart'
export const claim = 'The quickstart works on a machine without any setup.'

const page = 'docs/quickstart.md'
/** The address that the page names; here a scripted model listens somewhere else. */
const pageAddress = 'http://127.0.0.1:8000/v1'

/** Every command of the page, one after the other, as somebody new would type them: an empty home, an empty folder, no key. */
export async function run({ say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const folder = await temporaryFolder()
  await using provider = await startFakeProvider()
  provider.script(() => ({ type: 'answer', content: [{ type: 'text', chunks: ['I am a ', 'scripted model.'] }] }))
  const user = await newUser(folder)
  const commands = pageCommands(await readFile(page, 'utf8'))
  const problems: string[] = []
  for (const { line, command } of commands) {
    const begun = performance.now()
    const typed = await withFreePort(command.replace(pageAddress, provider.baseUrl('openaiCompatible')))
    // Packing is done in the clone, as the page says; all else in the empty folder.
    const cwd = typed.startsWith('npm pack') ? process.cwd() : user.cwd
    const env = typed.startsWith('npm ') ? { ...networkOfNpm(), ...user.env } : user.env
    const problem = await attempt(typed, { cwd, env, dialogue: dialogues[command] })
    say(`${page}:${line}: ${((performance.now() - begun) / 1000).toFixed(1)} s: ${command}`)
    if (problem === undefined) continue
    problems.push(`${page}:${line}: \`${command}\`: ${problem}`)
    if (command.startsWith('npm')) break // nothing below it can work
  }
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return { ok: problems.length === 0, figures: { commands: commands.length, problems: problems.length } }
}

interface User {
  cwd: string
  env: Record<string, string>
}

/** Global packages go where this user may write. */
async function newUser(folder: string): Promise<User> {
  const [home, cwd, prefix] = [join(folder, 'home'), join(folder, 'empty'), join(folder, 'global')]
  for (const each of [home, cwd, prefix]) await mkdir(each)
  const path = [join(prefix, 'bin'), dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
  return { cwd, env: { HOME: home, PATH: path, TERM: 'xterm-256color', npm_config_prefix: prefix } }
}

/** How this machine reaches its package host, and what it has of it already. All else is for this repository only. */
function networkOfNpm(): Record<string, string> {
  const names =
    /^(?:https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(?:file|dir)|npm_config_(?:cache|registry|userconfig|globalconfig|cafile|proxy|https_proxy|noproxy))$/i
  const known = Object.entries(process.env).flatMap(([name, value]) =>
    names.test(name) && value !== undefined ? [[name, value] as const] : [],
  )
  const quick = { npm_config_prefer_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' }
  return { ...Object.fromEntries(known), ...quick }
}

/** The page uses the default port. If another program on this machine has it, the server takes any free one. */
async function withFreePort(command: string): Promise<string> {
  if (command !== 'tapetree serve') return command
  const server = createServer().listen(8787, '127.0.0.1')
  try {
    await once(server, 'listening')
    return command
  } catch {
    return `${command} --port 0`
  } finally {
    server.close()
  }
}

interface Attempt extends User {
  dialogue: ((terminal: Terminal) => Promise<void>) | undefined
}

/** What went wrong, if anything did. */
async function attempt(command: string, { cwd, env, dialogue }: Attempt): Promise<string | undefined> {
  try {
    if (dialogue) {
      await using terminal = startTerminal({ home: { cwd, env }, command: ['bash', '-c', `exec ${command}`] })
      await dialogue(terminal)
      const code = await terminal.exit
      return code === 0 ? undefined : `exit code ${code}\n${terminal.screen()}`
    }
    // Nobody types anything, and nothing is piped in.
    await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', `exec < /dev/null; ${command}`], {
      cwd,
      env,
      timeout: 180_000,
    })
    return undefined
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return `${error instanceof Error ? error.message : String(error)}\n${stdout}${stderr}`
  }
}
