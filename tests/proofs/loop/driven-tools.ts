import type { CheckedCall, Tool, ToolContext, ToolOutput } from '../../../packages/agent/src/tools/tool.ts'

/** `look` only reads and may be run again, `write` may not, `command` goes on without us and can be asked. */
export type ToolName = 'look' | 'write' | 'command'

export const replayOf = { look: 'safe', write: 'never', command: 'reattach' } as const

/** A process that uses the tools. */
export interface ToolUser {
  isDead(): boolean
  /** A tool begins to do something. */
  began(callId: string, name: ToolName): void
}

/** Where somebody waits for work. */
interface Awaited {
  resolve: (output: ToolOutput) => void
  reject: (error: Error) => void
}

interface Work {
  name: ToolName
  /** A command may have ended with nobody there. */
  ended?: ToolOutput
  awaited?: Awaited | undefined
}

/** Tools whose work ends only when it is told to. They are outside of the process, and see it die. */
export class DrivenTools {
  /** How often each call was carried out. */
  readonly executions = new Map<string, number>()
  readonly #work = new Map<string, Work>()
  readonly #options: { isDeaf: boolean; hasDeadline: boolean }

  constructor(options: { isDeaf: boolean; hasDeadline: boolean }) {
    this.#options = options
  }

  /** Work that can be told to end. */
  get running(): string[] {
    return [...this.#work].flatMap(([callId, { ended }]) => (ended ? [] : [callId]))
  }

  /** Whether the process waits for one of them. */
  get isAwaited(): boolean {
    return [...this.#work.values()].some(({ awaited }) => awaited !== undefined)
  }

  end(callId: string, output: ToolOutput | Error): void {
    const work = this.#work.get(callId)
    if (!work) return
    const { awaited } = work
    if (!awaited && !(output instanceof Error)) work.ended = output
    else this.#work.delete(callId)
    if (output instanceof Error) awaited?.reject(output)
    else awaited?.resolve(output)
  }

  /** The process is gone, and with it what ran inside of it. */
  processDied(): void {
    for (const [callId, work] of this.#work) {
      if (work.name === 'command') work.awaited = undefined
      else this.#work.delete(callId)
    }
  }

  toolsFor(user: ToolUser): Tool[] {
    return (['look', 'write', 'command'] as const).map((name) => this.#tool(name, user))
  }

  #tool(name: ToolName, user: ToolUser): Tool {
    return {
      name,
      description: name,
      inputSchema: { type: 'object' },
      readOnly: name === 'look',
      replay: replayOf[name],
      deadlineMs: this.#options.hasDeadline ? 600_000 : Infinity,
      check: (): CheckedCall => ({
        access: [],
        run: (context) => this.#run(name, context, user),
        ...(name === 'command' && { reattach: (_, context) => this.#reattach(context) }),
      }),
    }
  }

  #run(name: ToolName, context: ToolContext, user: ToolUser): Promise<ToolOutput> {
    if (user.isDead()) return new Promise(() => undefined)
    const { callId } = context
    this.executions.set(callId, (this.executions.get(callId) ?? 0) + 1)
    user.began(callId, name)
    const work: Work = { name }
    this.#work.set(callId, work)
    return this.#wait(work, context)
  }

  async #reattach(context: ToolContext): Promise<ToolOutput> {
    const work = this.#work.get(context.callId)
    if (!work) return { content: 'It never began.', isError: true }
    if (!work.ended) return this.#wait(work, context)
    this.#work.delete(context.callId)
    return work.ended
  }

  #wait(work: Work, { callId, signal }: ToolContext): Promise<ToolOutput> {
    const { promise, resolve, reject } = Promise.withResolvers<ToolOutput>()
    const awaited: Awaited = { resolve, reject }
    work.awaited = awaited
    const stop = (): void => {
      // A new process may have taken it over.
      if (work.awaited !== awaited) return
      this.#work.delete(callId)
      reject(signal.reason as Error)
    }
    if (this.#options.isDeaf) return promise
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    // Node keeps a signal that is made of others as long as somebody listens to it.
    return promise.finally(() => signal.removeEventListener('abort', stop))
  }
}
