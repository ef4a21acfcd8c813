import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { spawn } from 'node:child_process'
import { exitCodes } from '../../../packages/cli/src/command-line/exit-code.ts'
import { pair, parseServerLink } from '../../../packages/cli/src/host/pair.ts'
import { fakeHome, type FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { runCommand, type CommandEnd } from '../../terminal/command.ts'
import { builtCommand } from '../../terminal/command-path.ts'
import { startTerminal } from '../../terminal/terminal.ts'

/** A machine on which no command can run in a sandbox. The programs and the kernel settings on it are real, as far as a namespace can show them. */
export interface MachineWithoutBackend {
  what: string
  /** Words of the reason and of the repair. */
  reason: string
  repair: string
  /** Hides bubblewrap from the command. */
  hasBubblewrap: boolean
  /** Options of bubblewrap for a namespace around the command. */
  around?: (folder: string) => string[]
}

/** How long a client may take to learn the mode. */
const patienceMs = 20_000

const noNamespaces = ['--unshare-user', '--disable-userns', '--die-with-parent', '--dev-bind', '/', '/']

export const machinesWithoutBackend: readonly MachineWithoutBackend[] = [
  {
    what: 'bubblewrap is missing',
    reason: 'bubblewrap is not installed.',
    repair: 'apt-get install bubblewrap',
    hasBubblewrap: false,
  },
  {
    what: 'namespaces are forbidden',
    reason: 'bubblewrap cannot create a sandbox here: bwrap: ',
    repair: 'allow user namespaces',
    hasBubblewrap: true,
    around: () => noNamespaces,
  },
  {
    what: 'AppArmor forbids namespaces',
    reason: 'AppArmor does not let bubblewrap create user namespaces: bwrap: ',
    repair: '/etc/apparmor.d/bwrap',
    hasBubblewrap: true,
    around: (folder) => [...noNamespaces, '--bind', settingsOfAppArmor(folder), '/proc/sys/kernel'],
  },
]

/** The settings of a kernel on which only programs with a profile may create user namespaces. */
function settingsOfAppArmor(folder: string): string {
  const settings = join(folder, 'kernel')
  mkdirSync(join(settings, 'random'), { recursive: true })
  for (const name of ['overflowuid', 'overflowgid', 'random/boot_id'])
    copyFileSync(join('/proc/sys/kernel', name), join(settings, name))
  writeFileSync(join(settings, 'apparmor_restrict_unprivileged_userns'), '1\n')
  return settings
}

/** Where a missing sandbox must be named, and what must not happen. */
export const placesToSay = ['run', 'required', 'doctor', 'chat', 'client'] as const
export type PlaceToSay = (typeof placesToSay)[number]

/** Runs the command on such a machine. Returns what is wrong. */
export async function tryWithoutBackend(
  machine: MachineWithoutBackend,
  { bwrap, place }: { bwrap: string; place: PlaceToSay },
): Promise<string | undefined> {
  await using home = await fakeHome({ settings: { permissions: { mode: undefined } } })
  const bin = join(home.home, 'bin')
  mkdirSync(bin)
  const programs = ['sh', 'bash', 'touch', 'id', 'git', ...(machine.hasBubblewrap ? ['bwrap'] : [])]
  for (const name of programs) symlinkSync(name === 'bwrap' ? bwrap : join('/usr/bin', name), join(bin, name))
  const around = machine.around && [bwrap, ...machine.around(home.home), '--']
  const there: There = {
    home: { ...home, env: { ...home.env, PATH: bin } },
    command: [...(around ?? []), ...builtCommand] as unknown as There['command'],
  }
  home.provider.script(
    {
      type: 'answer',
      content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: ['{"command":"touch made && id -u"}'] }],
    },
    { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] },
  )
  const problem = await checks[place](there, machine)
  return existsSync(join(home.cwd, 'made')) ? 'a command ran that nobody was asked about' : problem
}

interface There {
  home: FakeHome
  command: readonly [string, ...string[]]
}

type Check = (there: There, machine: MachineWithoutBackend) => Promise<string | undefined>

const checks: Record<PlaceToSay, Check> = {
  run: async (there, { reason, repair }) => {
    const { code, stdout, stderr } = await runCommand({ ...there, args: ['run', '--jsonl', 'go'] })
    if (code !== exitCodes.permissionNeeded) return `run has exit code ${code}: ${stderr}`
    const said = `Commands cannot run in a sandbox, so they are asked about as in mode ask. ${reason}`
    if (!stderr.includes(said) || !stderr.includes(repair)) return `stderr does not say why: ${stderr}`
    const logged = stdout.split('\n').find((line) => line.includes('"permission_mode":'))
    return logged?.includes('"mode":"ask"') && logged.includes(reason)
      ? undefined
      : `the log does not say why: ${stdout}`
  },
  required: async (there, { reason, repair }) => {
    const end = await runCommand({ ...there, args: ['run', '--sandbox', 'required', 'go'] })
    if (end.code !== exitCodes.configuration) return `--sandbox required does not refuse: ${end.code}`
    if (there.home.provider.requests.length > 0) return '--sandbox required asked the model'
    return says(end, [`A sandbox is required, and commands cannot run in one here. ${reason}`, repair])
  },
  doctor: async (there, { reason, repair }) => {
    const end = await runCommand({ ...there, args: ['doctor', '--json'] })
    return says(end, [`Commands cannot run in a sandbox, so the default mode is ask. ${reason}`, repair])
  },
  chat: async (there) => {
    await using terminal = startTerminal({ ...there, columns: 160 })
    await terminal.waitFor('ask: no sandbox')
    terminal.type('go')
    terminal.press('enter')
    await terminal.waitFor('touch made')
    await terminal.waitFor(/Allow/)
    return undefined
  },
  client: async ({ home, command: [program, ...first] }, { reason }) => {
    const args = [...first, 'serve', '--json', '--port', '0']
    const server = spawn(program, args, { cwd: home.cwd, env: home.env, stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = once(server, 'exit')
    try {
      const [line] = (await once(createInterface(server.stdout), 'line')) as [string]
      const link = parseServerLink((JSON.parse(line) as { pairing_link: string }).pairing_link)
      if (!link) return `serve printed no link: ${line}`
      const { token } = await pair(link)
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ cwd: home.cwd })
      const made = await fetch(new URL('/api/sessions', link.url), { method: 'POST', headers, body })
      const { id } = (await made.json()) as { id: string }
      const signal = AbortSignal.timeout(patienceMs)
      const stream = await fetch(new URL(`/api/sessions/${id}/events/stream`, link.url), { headers, signal })
      const config = await untilConfig(stream)
      return config.includes(reason) ? undefined : `a client does not learn why: ${config.slice(0, 500)}`
    } finally {
      server.kill('SIGTERM')
      await ended
    }
  },
}

function says({ stdout, stderr }: CommandEnd, words: readonly string[]): string | undefined {
  const text = (stdout + stderr).replaceAll(String.raw`\n`, '\n')
  const missing = words.find((each) => !text.includes(each))
  return missing === undefined ? undefined : `${JSON.stringify(missing)} is not said in ${text.slice(0, 1000)}`
}

/** What a client receives until it knows the mode. */
async function untilConfig({ body }: Response): Promise<string> {
  let text = ''
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.includes('mode_reason') && text.includes('\n\n')) break
  }
  return text
}
