import type {
  CreateTerminalRequest,
  TerminalOutputResponse,
  WaitForTerminalExitResponse,
} from '@agentclientprotocol/sdk/unstable'
import type { ForeignRun } from '@tapetree/agent/foreign'
import { newId } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import { isAbsolute } from 'node:path'
import { quoted } from './agent-updates.ts'

interface Terminal {
  text: string
  isCut: boolean
  exit: WaitForTerminalExitResponse | undefined
  isReleased: boolean
  done: Promise<WaitForTerminalExitResponse>
  controller: AbortController
}

const defaultLimit = 1024 * 1024
const maxTerminals = 32
/** How long the end of a turn waits for its commands, which have been told to stop. */
const closeMs = 2000

/** The commands that an agent runs in a turn. None outlives the turn. */
export class AgentTerminals {
  readonly #run: ForeignRun
  readonly #terminals = new Map<string, Terminal>()

  constructor(run: ForeignRun) {
    this.#run = run
  }

  /** Aborting the signal withdraws the question whether the command may start. It does not stop a command. */
  async create(request: CreateTerminalRequest, asking: AbortSignal): Promise<string> {
    const { cwd, outputByteLimit } = request
    this.#makeRoom()
    const limit = Math.min(outputByteLimit ?? defaultLimit, defaultLimit)
    const controller = new AbortController()
    const { promise: done, resolve } = Promise.withResolvers<WaitForTerminalExitResponse>()
    const terminal: Terminal = { text: '', isCut: false, exit: undefined, isReleased: false, done, controller }
    const id = newId()
    this.#terminals.set(id, terminal)
    try {
      const started = await this.#run.startCommand(commandLine(request), {
        cwd: cwd != null && isAbsolute(cwd) ? cwd : this.#run.cwd,
        asking,
        // Not the signal of the run: a command lets its process end without it, and nobody would find it again.
        signal: controller.signal,
        onOutput: (text) => {
          terminal.text += text
          if (Buffer.byteLength(terminal.text) <= limit) return
          terminal.text = endOf(terminal.text, limit)
          terminal.isCut = true
        },
      })
      const end = ({ exitCode }: { exitCode?: number }): void => {
        terminal.exit = exitCode === undefined ? { signal: 'SIGTERM' } : { exitCode }
        resolve(terminal.exit)
      }
      started.done.then(end, () => end({}))
      return id
    } catch (error) {
      this.#terminals.delete(id)
      resolve({})
      throw error
    }
  }

  output(id: string): TerminalOutputResponse {
    const { text, isCut, exit } = this.#find(id)
    return { output: text, truncated: isCut, ...(exit && { exitStatus: exit }) }
  }

  exit(id: string): Promise<WaitForTerminalExitResponse> {
    return this.#find(id).done
  }

  kill(id: string): void {
    this.#find(id).controller.abort()
  }

  /** Ends it, too. What it has shown stays, for the result of the call that it belongs to. */
  release(id: string): void {
    const terminal = this.#find(id)
    terminal.isReleased = true
    terminal.controller.abort()
  }

  textOf(id: string): string | undefined {
    return this.#terminals.get(id)?.text
  }

  /** Stops the commands. Resolves when they have ended, or after a moment. */
  async close(): Promise<void> {
    const terminals = [...this.#terminals.values()]
    for (const { controller } of terminals) controller.abort()
    await settledWithin(Promise.all(terminals.map(({ done }) => done)), { ms: closeMs })
  }

  /** Forgets what the oldest of those that were released has shown. */
  #makeRoom(): void {
    if (this.#terminals.size < maxTerminals) return
    const [oldest] = [...this.#terminals].find(([, { isReleased }]) => isReleased) ?? []
    if (oldest === undefined) throw new Error(`A turn has at most ${maxTerminals} terminals. Release one first.`)
    this.#terminals.delete(oldest)
  }

  #find(id: string): Terminal {
    const found = this.#terminals.get(id)
    if (!found) throw new Error(`There is no terminal ${id}.`)
    return found
  }
}

/** The last whole characters that fit. */
function endOf(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  let start = Math.max(0, bytes.length - maxBytes)
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return bytes.toString('utf8', start)
}

/** Without arguments the command is a whole line for a shell. */
function commandLine({ command, args = [], env = [] }: CreateTerminalRequest): string {
  const line = args.length === 0 ? command : [command, ...args].map(quoted).join(' ')
  if (env.length === 0) return line
  const variables = env.map(({ name, value }) => quoted(`${name}=${value}`)).join(' ')
  return args.length === 0 ? `env ${variables} bash -c ${quoted(command)}` : `env ${variables} ${line}`
}
