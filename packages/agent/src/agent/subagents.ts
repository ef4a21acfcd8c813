import { SessionError, newId, type Session, type SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { untilAborted } from '@tapetree/session/util/deadline'
import type { RunEnd } from '../run/run-settings.ts'
import { SessionSuspended, defineTool, type Gate, type Tool, type ToolContext, type ToolOutput } from '../tools/tool.ts'
import type { Run } from '../run/run-slot.ts'
import { z } from 'zod'
import { promptFile } from '../prompt/prompt-file.ts'

/** The members of an agent session that its parent needs. */
export interface Subagent {
  readonly session: Session
  resume(options: { byPerson: boolean }): Promise<Run | undefined>
  prompt(words: string, options: { expandTemplates: false; whenBusy: 'reject'; source: string }): Promise<PromptStart>
  setName(name: string): Promise<void>
  abort(): Promise<void>
  /** Leaves its run open, to be resumed together with the run of its parent. */
  suspend(): Promise<void>
  close(): Promise<void>
}

export type PromptStart = { type: 'started'; run: Run } | { type: 'steered' | 'queued' | 'handled' }

export interface SubagentsOptions<A extends Subagent> {
  store: SessionStore
  /** The session whose agent has subagents. */
  parent: Session
  cwd: string
  open: (child: { sessionId: string; tools: () => readonly Tool[]; gate: Gate }) => Promise<A>
  /** The tools of the parent. A subagent gets a subset. */
  tools: () => readonly Tool[]
  /**
   * The gate of the parent. It asks in the log of the parent, so observers of the parent see the request, and it
   * survives a restart.
   */
  gate: Gate
  /** How many may run at the same time; others wait. */
  maxAtOnce?: number
}

export interface Task {
  description: string
  prompt: string
  /** Names of tools. Default: all tools of the parent. */
  tools?: readonly string[] | undefined
}

const defaultAtOnce = 4
/** Subagents cannot have subagents. */
export const taskToolName = 'task'

/** The subagents of one session. Each has its own session and log, and is found again after a crash. */
export class Subagents<A extends Subagent = Subagent> {
  readonly #options: SubagentsOptions<A>
  readonly #running = new Map<string, A>()
  /** Wakes the waiting subagents, in order. */
  readonly #waiting = new Set<() => void>()
  #atWork = 0

  constructor(options: SubagentsOptions<A>) {
    this.#options = options
  }

  /** The subagents that run in this process: they can be observed, steered and aborted. */
  get running(): ReadonlyMap<string, A> {
    return this.#running
  }

  /** Runs a task, or resumes it if an earlier process started it, and returns the last answer. */
  async work(childId: string, task: Task, signal: AbortSignal): Promise<{ text: string; end: RunEnd }> {
    await this.#waitForRoom(signal)
    try {
      return await this.#workWith(await this.#open(childId, task), task, signal)
    } finally {
      this.#atWork--
      const [wakeNext] = this.#waiting
      wakeNext?.()
    }
  }

  async #workWith(child: A, task: Task, signal: AbortSignal): Promise<{ text: string; end: RunEnd }> {
    const stop = (): void => void (signal.reason instanceof SessionSuspended ? child.suspend() : child.abort())
    this.#running.set(child.session.id, child)
    signal.addEventListener('abort', stop, { once: true })
    try {
      const end = await begin(child, task, signal)
      return { text: await lastAnswer(child.session), end }
    } finally {
      signal.removeEventListener('abort', stop)
      this.#running.delete(child.session.id)
      await child.close()
    }
  }

  async #open(sessionId: string, { tools: names }: Task): Promise<A> {
    const { store, parent, cwd, open, tools } = this.#options
    const created = store.create({ id: sessionId, cwd, parentSession: parent.id, subagent: true })
    // An earlier process may have created it.
    const session = await created.catch(unlessThere)
    await session?.close()
    const offered = (): readonly Tool[] =>
      tools().filter(({ name }) => name !== taskToolName && (names?.includes(name) ?? true))
    return open({ sessionId, tools: offered, gate: this.#gateFor(sessionId) })
  }

  /** Providers choose the ids of calls, so two subagents may have the same. */
  #gateFor(sessionId: string): Gate {
    const { gate } = this.#options
    return { admit: (call, signal) => gate.admit({ ...call, callId: `${sessionId}/${call.callId}` }, signal) }
  }

  async #waitForRoom(signal: AbortSignal): Promise<void> {
    const { maxAtOnce = defaultAtOnce } = this.#options
    while (this.#atWork >= maxAtOnce) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      try {
        await untilAborted(promise, signal)
      } finally {
        // An aborted subagent must not be woken instead of one that waits.
        this.#waiting.delete(resolve)
      }
    }
    signal.throwIfAborted()
    this.#atWork++
  }
}

function unlessThere(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'session-exists') return undefined
  throw error
}

async function begin(child: Subagent, { prompt, description }: Task, signal: AbortSignal): Promise<RunEnd> {
  signal.throwIfAborted()
  const { session } = child
  // Its parent was resumed, so the permission to resume exists.
  const resumed = await child.resume({ byPerson: true })
  if (resumed) return endOf(resumed, child, signal)
  const { messages } = await session.getContext()
  // It had finished, but its parent had not recorded the result.
  if (messages.some(({ message }) => message.role === 'user')) return lastEnd(session)
  if (session.name === '') await child.setName(description)
  const outcome = await child.prompt(prompt, { expandTemplates: false, whenBusy: 'reject', source: 'task' })
  if (outcome.type !== 'started') throw new SessionError('session-busy', 'The subagent is busy.')
  return endOf(outcome.run, child, signal)
}

async function endOf({ done }: Run, child: Subagent, { aborted, reason }: AbortSignal): Promise<RunEnd> {
  // A stop before the run began had nothing to stop.
  if (aborted && !(reason instanceof SessionSuspended)) await child.abort()
  return done
}

async function lastEnd(session: Session): Promise<RunEnd> {
  let end: RunEnd = { runId: '', outcome: 'completed' }
  for await (const stored of session.lines()) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type === 'run_end') end = line.runEnd
  }
  return end
}

async function lastAnswer(session: Session): Promise<string> {
  const { messages } = await session.getContext()
  const last = messages.findLast(({ message }) => message.role === 'assistant')?.message
  return (last?.content ?? []).flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

const schema = z
  .strictObject({
    description: z.string().min(1).max(200).describe('A title of three to seven words, for the user.'),
    prompt: z.string().min(1).describe('The whole task: the subagent sees nothing else.'),
    tools: z.array(z.string()).optional().describe('The tools that it may use; all of yours if absent.'),
  })
  // Every call gets its own subagent, whatever ids the model gives to its calls.
  .transform((input) => ({ ...input, childId: newId() }))

/** Runs a task in a subagent. After a crash the subagent is resumed. */
export function taskTool(subagents: Subagents): Tool {
  const work = async (input: z.output<typeof schema>, childId: string, context: ToolContext): Promise<ToolOutput> => {
    const { text, end } = await subagents.work(childId, input, context.signal)
    if (end.outcome === 'completed') return { content: text === '' ? 'The subagent returned no text.' : text }
    const why = end.message ?? end.reason ?? 'it was stopped'
    const said = text === '' ? '' : `\nIts text so far:\n${text}`
    return { content: `The subagent did not finish: ${why}${said}`, isError: true }
  }
  return defineTool({
    name: taskToolName,
    description: promptFile('task'),
    schema,
    // Its calls are checked one by one; several tasks may run in parallel.
    readOnly: true,
    replay: 'reattach',
    deadlineMs: Infinity,
    access: () => [],
    start: ({ childId }) => ({ childSession: childId }),
    run: (input, context) => work(input, input.childId, context),
    reattach: (input, { childSession }, context) => work(input, childSession ?? input.childId, context),
  })
}
