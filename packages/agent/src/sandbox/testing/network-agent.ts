// An agent that does nothing but run commands in a sandbox with a network: a process that tests can kill, or run as another user.
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { noRules } from '../../permissions/rules.ts'
import { startCommand } from '../../tools/commands/command.ts'
import { commandEnvironment } from '../../tools/commands/environment.ts'
import { NetworkKeeper } from '../network-keeper.ts'
import { probeSandbox } from '../probe.ts'
import type { ProxyEvent } from '../proxy.ts'
import { Sandbox } from '../sandbox.ts'

/** The first line of its standard input. */
export interface NetworkAgentOptions {
  folder: string
  networkFolder: string
  hosts: Record<string, string>
  allowed: string[]
  /** What the user answers when asked about a host. */
  answer?: boolean
}

/** A further line. */
export interface NetworkAgentCommand {
  id: string
  command: string
}

export type NetworkAgentReport =
  | { type: 'started' | 'failed'; id: string; problem?: string }
  | { type: 'ended'; id: string; code: number | null; text: string }
  | { type: 'event'; event: ProxyEvent }

const lines = createInterface(process.stdin)[Symbol.asyncIterator]()
const { folder, networkFolder, hosts, allowed, answer } = JSON.parse(
  (await lines.next()).value as string,
) as NetworkAgentOptions
const support = await probeSandbox()
const [work, home, keep] = ['work', 'home', 'keep'].map((name) => join(folder, name)) as [string, string, string]
const network = new NetworkKeeper({
  folder: networkFolder,
  bwrap: support.type === 'bubblewrap' ? support.path : 'bwrap',
  rules: { ...noRules, user: allowed.map((match) => ({ effect: 'allow', type: 'fetch', match })) },
  onEvent: (event) => report({ type: 'event', event }),
  hosts,
  idleMs: 100,
  ...(answer !== undefined && { ask: () => Promise.resolve(answer) }),
})
const sandbox = await Sandbox.open({ folders: [work], home, keep, own: [networkFolder], support, network })

for (let next = await lines.next(); next.done !== true; next = await lines.next())
  void run(JSON.parse(next.value) as NetworkAgentCommand)
await network.close()

async function run({ id, command }: NetworkAgentCommand): Promise<void> {
  try {
    const { argv, env } = await sandbox.box(work, { callId: id })
    const environment = commandEnvironment({ PATH: process.env['PATH'], HOME: home }, { set: env })
    const spool = join(folder, `spool-${id}`)
    const started = await startCommand({ spool, command, cwd: work, env: environment, box: argv, deadlineMs: 60_000 })
    report({ type: 'started', id })
    const outcome = await started.wait()
    const { pieces } = await started.output()
    const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()
    report({ type: 'ended', id, code: outcome.type === 'ended' ? outcome.exit.code : null, text })
  } catch (error) {
    report({ type: 'failed', id, problem: (error as Error).message })
  }
}

function report(what: NetworkAgentReport): void {
  process.stdout.write(`${JSON.stringify(what)}\n`)
}
