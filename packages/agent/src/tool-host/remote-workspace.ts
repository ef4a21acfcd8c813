import { newId, text } from '@tapetree/session'
import type { RecordDraft } from '@tapetree/session/format'
import { isObject } from '@tapetree/session/util/json'
import { Listeners } from '@tapetree/session/util/listeners'
import type { GateSandbox } from '../permissions/gate.ts'
import { outputOf } from '../run/tool-results.ts'
import { allTools, needsFiles } from '../tools/builtin/all-tools.ts'
import type { CommandSandbox } from '../tools/commands/command.ts'
import {
  SessionSuspended,
  type Access,
  type BoxKind,
  type StartDetails,
  type Tool,
  type ToolContext,
  type ToolOutput,
} from '../tools/tool.ts'
import { sha256Of } from '../util/request-hash.ts'
import type {
  CallOutcome,
  CallRequest,
  HostedWorkspace,
  HostHello,
  HostMessage,
  HostRecord,
  HostRequest,
} from './messages.ts'

/** The way to one tool host. It may go away and come back. */
export interface HostChannel {
  /** How the host introduced itself. Undefined while it cannot be reached. */
  readonly hello: HostHello | undefined
  /** The message is lost if the host cannot be reached. */
  send(request: HostRequest): void
  subscribe(listener: (event: ChannelEvent) => void): () => void
}

export type ChannelEvent = { type: 'up' } | { type: 'down' } | { type: 'message'; message: HostMessage }

/** A workspace as the log names it. */
export interface WorkspaceReference {
  name: string
  hostId: string
  hostName: string
  /** Absolute, on the host. */
  folder: string
  platform: string
}

const texts = {
  unknown: (host: string) =>
    `It was started on another tool host (${host}), so its outcome is unknown. It may have taken effect; it was not run again.`,
  notAnObject: 'The input must be an object.',
  noShell: 'The tool host runs no commands.',
  silent: (host: string) =>
    `The tool host ${host} did not answer in time. It may have taken effect; it was not run again.`,
  noImage: '(The tool host did not send this image.)',
  wandering: 'The files of this call changed while it was being allowed, so nothing was done. Try again.',
}

/** More live output of one call than this is left out on the screens. The result is not affected. */
const maxLiveOutput = 1024 * 1024
const maxReadmissions = 3
/** More questions of one call about hosts are not asked: at once, and in total. */
const maxOpenQuestions = 16
const maxQuestions = 256
/** How long a host has to return what a call did that is over its deadline. */
const graceMs = 5000

/**
 * The tools of a session that works in a folder of another machine. A call is sent once it is in the log, and is attached to again
 * after every interruption, until its result is there.
 */
export class RemoteWorkspace {
  readonly reference: WorkspaceReference
  /** For the gate of the session. */
  readonly sandbox: GateSandbox
  readonly channel: HostChannel
  readonly #changed = new Listeners<void>()
  readonly #stop: () => void
  #described: HostedWorkspace | undefined

  constructor(reference: WorkspaceReference, channel: HostChannel) {
    this.reference = reference
    this.channel = channel
    this.#described = this.#offered()
    this.#stop = channel.subscribe(({ type }) => {
      if (type === 'message') return
      this.#described = this.#offered() ?? this.#described
      this.#changed.notify()
    })
    this.sandbox = {
      isUsable: async () => this.#described?.sandbox !== undefined,
      describe: async () => this.#described?.sandbox ?? '',
      // The snapshots of the service do not have the files of a host.
      findUnheld: async ([first]) => first?.path,
    }
  }

  /** Why the tools cannot be used now; undefined if they can. */
  get problem(): string | undefined {
    return RemoteWorkspace.problemOf(this.reference, this.channel.hello)
  }

  /** The same for a session that is not open. `hello`: undefined if the host cannot be reached. */
  static problemOf({ name, hostName }: WorkspaceReference, hello: HostHello | undefined): string | undefined {
    if (!hello) return `The tool host ${hostName} cannot be reached.`
    const isOffered = hello.workspaces.some((offered) => offered.name === name)
    return isOffered ? undefined : `The tool host ${hostName} no longer offers the workspace ${name}.`
  }

  /** The instructions in the folder. */
  get instructions(): HostedWorkspace['instructions'] {
    return this.#described?.instructions ?? []
  }

  /** Calls the listener when `problem` may have changed. */
  subscribe(listener: () => void): () => void {
    return this.#changed.add(listener)
  }

  /** Resolves when the tools can be used. Rejects with the reason of the signal. */
  async ready(signal: AbortSignal): Promise<void> {
    while (this.problem !== undefined) {
      signal.throwIfAborted()
      await new Promise<void>((resolve) => {
        const stop = this.subscribe(done)
        signal.addEventListener('abort', done, { once: true })
        function done(): void {
          stop()
          signal.removeEventListener('abort', done)
          resolve()
        }
      })
    }
  }

  /** Only tools for files and commands: a host must not take the place of a tool that works beside the model. */
  tools(): Tool[] {
    return this.#offers().map(({ known, described }) => this.#tool(described, known))
  }

  /**
   * Runs a command that the user typed. The host judges it; the gate of the session is not asked. The host runs a
   * `callId` of the session once, and keeps its result until `settle`. It is sent in the same step. `onlyAttach`: an
   * earlier process was to send it; if it has not started, it does not start.
   */
  async runForUser(command: string, context: ToolContext, { onlyAttach = false } = {}): Promise<ToolOutput> {
    // The host may not have been reached since this process began.
    const known = onlyAttach ? this.#known() : this.#offers().map((offer) => offer.known)
    const bash = known.find(({ name }) => name === 'bash')
    const checked = bash?.check({ command }, context)
    if (typeof checked !== 'object') return { content: checked ?? texts.noShell, isError: true }
    const { access } = checked
    const order = { id: context.callId, tool: 'bash', input: { command }, access, ...(onlyAttach && { onlyAttach }) }
    return this.#call(order, { context, deadlineMs: bash?.deadlineMs ?? Infinity })
  }

  /** The result of the call is in the log: the host forgets it. */
  settle(id: string, { sessionId }: Pick<ToolContext, 'sessionId'>): void {
    this.channel.send({ type: 'settled', id, session: sessionId })
  }

  /** Whether the host lets sessions keep the files. */
  get sharesFiles(): boolean {
    return this.#described?.sharesFiles ?? false
  }

  close(): void {
    this.#stop()
  }

  #offers(): { known: Tool; described: HostedTool }[] {
    const offered = new Map(this.#described?.tools.map((tool) => [tool.name, tool]))
    return this.#known().flatMap((known) => {
      const described = offered.get(known.name)
      return described ? [{ known, described }] : []
    })
  }

  /** Our own tools: they predict what a call touches. */
  #known(): Tool[] {
    const hasSandbox = this.#described?.sandbox !== undefined
    return allTools(hasSandbox ? { bash: { sandbox: elsewhere } } : {}).filter(({ name }) => needsFiles(name))
  }

  #offered(): HostedWorkspace | undefined {
    return this.channel.hello?.workspaces.find(({ name }) => name === this.reference.name)
  }

  /** `known`: our own tool of the same name. It predicts what the call will touch; the host does nothing if that is wrong. */
  #tool({ description, inputSchema }: HostedTool, known: Tool): Tool {
    const { name, readOnly, deadlineMs } = known
    const { hostId } = this.reference
    return {
      name,
      description,
      inputSchema,
      readOnly,
      // The host knows what became of it.
      replay: 'reattach',
      // Its deadline does not count the time while the host is away.
      deadlineMs: Infinity,
      check: (input, place) => {
        if (!isObject(input)) return texts.notAnObject
        const checked = known.check(input, place)
        if (typeof checked === 'string') return checked
        const { access } = checked
        const id = newId()
        const call = (callId: string, context: ToolContext): Promise<ToolOutput> =>
          this.#call({ id: callId, tool: name, input, access }, { context, deadlineMs })
        return {
          access,
          start: ({ box }) => ({ host: hostId, spool: id, ...(box && { sandbox: this.#sandboxOf(box) }) }),
          run: (context) => call(id, context),
          reattach: async (start, context) => {
            const { host = '', spool = '' } = start
            if (host !== hostId) return { content: texts.unknown(host), isError: true }
            // If the call has never reached the host, it starts now.
            const box = boxOf(start)
            return call(spool, { ...context, ...(box && { box }) })
          },
          settled: async ({ spool = '' }, context) => this.settle(spool, context),
        }
      },
    }
  }

  /** For the log: the sandbox of the host in which the gate has allowed a command. */
  #sandboxOf(box: BoxKind): NonNullable<StartDetails['sandbox']> {
    const writable = box === 'read-only' ? [] : [this.reference.folder]
    return { backend: 'tool-host', writable, hosts: [], home: 'unknown' }
  }

  async #call(
    { access, ...order }: Pick<CallRequest, 'id' | 'tool' | 'input' | 'onlyAttach'> & { access: readonly Access[] },
    { context, deadlineMs }: { context: ToolContext; deadlineMs: number },
  ): Promise<ToolOutput> {
    let judged = access
    let box: BoxKind | undefined = context.box
    for (let asked = 0; ; asked++) {
      const { sessionId: session, runId: run, callId: call } = context
      const { name: workspace, hostName } = this.reference
      const end = await new RemoteCall(this.channel, {
        ...{ type: 'call', ...order, session, run, call, workspace, judged: [...judged], from: 0 },
        ...(box && { box }),
        ...(context.model && { model: context.model }),
      }).end(context, deadlineMs)
      if (end.type === 'silent') return { content: texts.silent(hostName), isError: true }
      if (end.type === 'done') return deliver(end.outcome, context)
      if (end.type === 'refused') return { content: end.reason, isError: true }
      if (asked === maxReadmissions) return { content: texts.wandering, isError: true }
      const verdict = await context.readmit(end.access)
      if (verdict.type === 'denied') return { content: verdict.reason, isError: true }
      judged = end.access
      box = verdict.box
    }
  }
}

type HostedTool = HostedWorkspace['tools'][number]
type CallEnd = Extract<HostMessage, { type: 'done' | 'refused' | 'elsewhere' }>

/** One call, from its first message until its end, across interruptions of the channel. */
class RemoteCall {
  readonly #channel: HostChannel
  readonly #request: CallRequest
  /** The characters of its output that were shown. */
  #shown = 0
  readonly #questions = new Set<number>()
  #asked = 0

  constructor(channel: HostChannel, request: CallRequest) {
    this.#channel = channel
    this.#request = request
  }

  /** `silent`: the host can be reached and does not answer. */
  async end(context: ToolContext, deadlineMs: number): Promise<CallEnd | { type: 'silent' }> {
    const { signal, clock } = context
    const over = new AbortController()
    return new Promise((resolve, reject) => {
      let counting = new AbortController()
      const count = (): void => {
        counting.abort()
        counting = new AbortController()
        if (deadlineMs === Infinity || !this.#channel.hello) return
        const giveUp = async (still: AbortSignal): Promise<void> => {
          await clock.wait(deadlineMs, still)
          this.#channel.send({ type: 'cancel', id: this.#request.id })
          await clock.wait(graceMs, still)
          finish()
          resolve({ type: 'silent' })
        }
        // Another outcome came first.
        giveUp(counting.signal).catch(() => undefined)
      }
      const finish = (): void => {
        stopListening()
        over.abort()
        counting.abort()
        signal.removeEventListener('abort', stop)
      }
      const stopListening = this.#channel.subscribe((event) => {
        if (event.type !== 'message') count()
        if (event.type === 'up') this.#send(signal)
        if (event.type !== 'message' || !('id' in event.message) || event.message.id !== this.#request.id) return
        const { message } = event
        switch (message.type) {
          case 'output':
            return this.#show(message.off, message.text, context)
          case 'reach':
            return void this.#reach(message, context, over.signal)
          case 'done':
          case 'refused':
          case 'elsewhere':
            finish()
            return resolve(message)
          case 'files':
          case 'data':
          case 'part':
          case 'recreated':
          case 'jobs':
            // None of these has the id of a call.
            return undefined
          default:
            message satisfies never
        }
      })
      const stop = (): void => {
        if (signal.reason instanceof SessionSuspended) {
          // It continues without this process, which no longer waits for it.
          finish()
          return reject(signal.reason)
        }
        // If the host cannot be reached, it is told when it can.
        this.#send(signal)
      }
      signal.addEventListener('abort', stop, { once: true })
      count()
      this.#send(signal)
    })
  }

  #send({ aborted, reason }: AbortSignal): void {
    if (!this.#channel.hello || (aborted && reason instanceof SessionSuspended)) return
    this.#channel.send({ ...this.#request, from: this.#shown, ...(aborted && { isStopped: true }) })
    if (aborted) this.#channel.send({ type: 'cancel', id: this.#request.id })
  }

  #show(off: number, printed: string, context: ToolContext): void {
    const known = Math.max(0, this.#shown - off)
    if (known >= printed.length) return
    if (off > this.#shown) context.observe(`\n[${off - this.#shown} characters skipped]\n`)
    if (this.#shown < maxLiveOutput) context.observe(printed.slice(known))
    this.#shown = off + printed.length
  }

  async #reach(
    { id, question, host, port }: Extract<HostMessage, { type: 'reach' }>,
    context: ToolContext,
    over: AbortSignal,
  ): Promise<void> {
    if (this.#questions.has(question) || this.#questions.size >= maxOpenQuestions || this.#asked >= maxQuestions) return
    this.#asked++
    this.#questions.add(question)
    const verdict = await context.reach({ host, port }, over).catch(() => undefined)
    this.#questions.delete(question)
    if (over.aborted) return
    this.#channel.send({
      ...{ type: 'reached', id, question },
      ...(verdict && {
        verdict: verdict.type === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: verdict.reason },
      }),
    })
  }
}

function boxOf({ sandbox }: StartDetails): BoxKind | undefined {
  return sandbox && (sandbox.writable.length === 0 ? 'read-only' : 'writable')
}

/** What the call left goes into the log before its result. */
async function deliver({ output, records, blobs, exitCode }: CallOutcome, context: ToolContext): Promise<ToolOutput> {
  const kept = new Set<string>()
  for (const { sha256, data } of blobs) {
    const bytes = Buffer.from(data, 'base64')
    if (sha256Of(bytes) === sha256) kept.add((await context.putBlob(bytes)).sha256)
  }
  for (const record of records) await context.append(draftOf(record, context))
  const { content, ...said } = outputOf(output)
  const rest = { ...said, ...(exitCode !== undefined && { exitCode }) }
  if (typeof content === 'string') return { content, ...rest }
  // The log must not name a blob that it does not have.
  const shown = content.map((block) =>
    block.type === 'image' && block.image.source.type === 'blob' && !kept.has(block.image.source.sha256)
      ? text(texts.noImage)
      : block,
  )
  return { content: shown, ...rest }
}

function draftOf(record: HostRecord, { runId, callId }: ToolContext): RecordDraft {
  switch (record.type) {
    case 'file_read':
      return { type: 'file_read', fileRead: { ...record.fileRead, runId, callId } }
    case 'file_write':
      return { type: 'file_write', fileWrite: { ...record.fileWrite, runId, callId } }
    case 'blocked':
      return { type: 'blocked', blocked: { ...record.blocked, callId } }
    default:
      return record satisfies never
  }
}

/** Only tells our own `bash`, which predicts what a command touches, that there is a sandbox. */
const elsewhere: CommandSandbox = {
  details: notHere,
  box: notHere,
  blockedIn: notHere,
  takeBack: notHere,
}

function notHere(): never {
  throw new Error('The sandbox is on the tool host.')
}
