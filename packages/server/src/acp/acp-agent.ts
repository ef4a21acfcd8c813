import type { BoxProgram } from '@tapetree/agent/extensions'
import { inBox, type ForeignAgent, type ForeignRun } from '@tapetree/agent/foreign'
import type { Session } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { untilAborted } from '@tapetree/session/util/deadline'
import { Listeners } from '@tapetree/session/util/listeners'
import { existsSync } from 'node:fs'
import { emitWarning } from '../util/problem-error.ts'
import { AgentConnection } from './agent-connection.ts'
import { AgentTurn, modelErrorOf } from './agent-turn.ts'
import { readUpdate } from './agent-updates.ts'
import { promptBlocks } from './prompt-blocks.ts'

/** The program of an agent that speaks the Agent Client Protocol. */
export interface AgentProgram {
  /** Found in the `PATH` of `env`, or absolute. */
  command: string
  args: readonly string[]
  /** The complete environment. */
  env: Readonly<Record<string, string>>
}

export interface AcpAgentOptions {
  /** As the settings call it. */
  name: string
  program: AgentProgram
  /** Absolute. */
  cwd: string
  /** Puts the agent into a sandbox. */
  box?: BoxProgram
  /** Where the agent keeps its settings and its login, absolute: it may use them in the sandbox. Those that do not exist are left out. */
  folders?: readonly string[]
}

/** The custom entry that names the session of an agent. */
const sessionEntry = 'acp_session'

/** A session of the agent, and the last entry that the agent knows. */
interface OpenedSession {
  id: string
  connection: AgentConnection
  knownUntil: string | null
}

/** An agent of someone else that does the turns of one session of ours. It is started with the first turn, and again after it has died. */
export class AcpAgent implements ForeignAgent {
  readonly name: string
  readonly #options: AcpAgentOptions
  readonly #changes = new Listeners<void>(emitWarning)
  #starting: Promise<AgentConnection> | undefined
  #session: OpenedSession | undefined
  #commands: readonly { name: string; description: string }[] = []
  readonly #closing = new AbortController()

  constructor(options: AcpAgentOptions) {
    this.#options = options
    this.name = options.name
  }

  /** The slash commands that the agent offers. */
  get commands(): readonly { name: string; description: string }[] {
    return this.#commands
  }

  /** Calls the listener when the commands change. */
  onChange(listener: () => void): () => void {
    return this.#changes.add(listener)
  }

  async work(run: ForeignRun): Promise<void> {
    await run.settle()
    if (await run.isSettled()) return
    do {
      const connection = await this.#connected(run)
      const { id: sessionId, isNew } = await this.#opened(connection, run)
      run.beginTurn()
      const { image: hasImages = false } = connection.capabilities.promptCapabilities ?? {}
      const prompt = promptBlocks(await run.messages(), { hasImages, isNew })
      const { name } = this
      const onCommands = (commands: { name: string; description: string }[]): void => this.#setCommands(commands)
      try {
        await new AgentTurn({ run, connection, sessionId, name, onCommands }).play(prompt)
      } finally {
        if (this.#session?.id === sessionId) this.#session.knownUntil = run.head
      }
    } while (await run.deliverSteers())
  }

  /** Ends the agent. */
  async close(): Promise<void> {
    this.#closing.abort()
    const started = await this.#starting?.catch(() => undefined)
    await started?.end('The session was closed.')
  }

  async #connected(run: ForeignRun): Promise<AgentConnection> {
    const known = await untilAborted(this.#starting?.catch(() => undefined) ?? Promise.resolve(undefined), run.signal)
    await untilAborted(known?.idle ?? Promise.resolve(), run.signal)
    if (!known || known.isGone) this.#starting = this.#start()
    const starting = this.#starting
    try {
      if (!starting) throw new TypeError('The agent was not started.')
      return await untilAborted(starting, run.signal)
    } catch (error) {
      run.signal.throwIfAborted()
      if (this.#starting === starting) this.#starting = undefined
      throw modelErrorOf(error, this.name)
    }
  }

  async #start(): Promise<AgentConnection> {
    const { name, program, cwd, box, folders = [] } = this.#options
    const { signal } = this.#closing
    if (signal.aborted) throw new Error(`The agent ${name} was closed.`)
    const boxed = await box?.({ type: 'agent', name, cwd, folders: folders.filter((folder) => existsSync(folder)) })
    const { command: file, args, env } = program
    return AgentConnection.start({
      name,
      program: { ...inBox({ file, args, env }, boxed), cwd },
      signal,
      onUpdate: (given) => {
        const update = readUpdate(given)
        if (update?.type === 'commands') this.#setCommands(update.commands)
      },
    })
  }

  /** The session of the agent that knows the conversation up to the new messages, or a new one. */
  async #opened(connection: AgentConnection, run: ForeignRun): Promise<{ id: string; isNew: boolean }> {
    const current = this.#session
    if (current?.connection === connection && (await isKnown(current.knownUntil, run))) {
      return { id: current.id, isNew: false }
    }
    try {
      const cwd = run.cwd
      const recorded = current?.connection === connection ? undefined : await recordedSession(this.name, run.session)
      if (recorded !== undefined && (await untilAborted(connection.reopenSession(recorded, cwd), run.signal))) {
        this.#session = { id: recorded, connection, knownUntil: run.head }
        return { id: recorded, isNew: false }
      }
      const id = await untilAborted(connection.newSession(cwd), run.signal)
      await run.append({
        type: 'custom',
        custom: { customType: sessionEntry, data: { agent: this.name, sessionId: id, of: run.session.id } },
      })
      this.#session = { id, connection, knownUntil: run.head }
      return { id, isNew: true }
    } catch (error) {
      run.signal.throwIfAborted()
      throw modelErrorOf(error, this.name)
    }
  }

  #setCommands(commands: readonly { name: string; description: string }[]): void {
    this.#commands = commands
    this.#changes.notify()
  }
}

/** Whether everything after this entry is new to the agent: messages of the user, and notes. */
async function isKnown(knownUntil: string | null, { head, session }: ForeignRun): Promise<boolean> {
  for (let next = head; next !== knownUntil;) {
    if (next === null) return false
    const entry = await session.getEntry(next)
    const isForeign = entry.type === 'message' && ['assistant', 'tool'].includes(entry.message.role)
    if (isForeign || entry.type === 'compaction' || entry.type === 'branch_summary') return false
    next = entry.parentId
  }
  return true
}

/**
 * The newest session of the agent on the path, unless the conversation went back or was compacted since: the agent does not know that. A
 * copy of a session does not share it, because it would know what was said in the other one.
 */
async function recordedSession(agent: string, session: Session): Promise<string | undefined> {
  const path = await session.getContextPath()
  const newest = path.findLast((entry) => entry.type === 'custom' && entry.custom.customType === sessionEntry)
  if (newest?.type !== 'custom') return undefined
  const { agent: name, sessionId, of } = newest.custom.data
  if (name !== agent || of !== session.id) return undefined
  for await (const stored of session.lines({ after: newest.seq })) {
    if (stored.type !== 'line' || !/"type":"(leaf|compaction|branch_summary)"/.test(stored.text)) continue
    const { type } = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (type === 'leaf' || type === 'compaction' || type === 'branch_summary') return undefined
  }
  return typeof sessionId === 'string' ? sessionId : undefined
}
