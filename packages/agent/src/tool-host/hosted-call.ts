import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import type { RecordDraft } from '@tapetree/session/format'
import type { Redactor } from '@tapetree/redact'
import type { Clock } from '@tapetree/session/util/wait'
import { redactionOf } from '../run/redaction.ts'
import { outputOf } from '../run/tool-results.ts'
import { attach } from '../tools/commands/command.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { currentBootId } from '../tools/commands/process-table.ts'
import {
  SessionSuspended,
  type Access,
  type BoxKind,
  type CheckedCall,
  type HostTarget,
  type StartDetails,
  type Tool,
  type ToolContext,
  type ToolOutput,
  type Verdict,
} from '../tools/tool.ts'
import type { CallJournal } from './call-journal.ts'
import { maxAllBytes } from './host-files.ts'
import {
  maxHostMessageBytes,
  type CallOutcome,
  type CallRequest,
  type HostMessage,
  type HostRecord,
} from './messages.ts'

/** A connection to the service. Messages that are sent after it was closed are lost. */
export interface HostLink {
  send(message: string): void
}

/** What a session may do on this host. */
export interface HostedSession {
  readonly folder: string
  /** For spools. */
  readonly localFolder: string
  readonly tools: readonly Tool[]
  /** The sandbox in which the host lets the call run, or why it does not. */
  judge(call: JudgedCall): Promise<{ box?: BoxKind } | { refused: string }>
  /** The call has its result. The service does not answer its questions any more. */
  ended(call: Pick<CallRequest, 'session' | 'call'>): void
}

export interface JudgedCall {
  tool: Tool
  access: readonly Access[]
  /** The sandbox that the service wants. */
  box: BoxKind | undefined
}

interface HostedCallDeps {
  journal: CallJournal
  redactor: Redactor
  clock: Clock
  /** Undefined if this host does not offer the workspace. */
  session: HostedSession | undefined
}

/** A service that attaches again gets this much of the last output. */
const keptOutput = 64 * 1024
const maxOutcomeBytes = maxHostMessageBytes - 64 * 1024

export const hostTexts = {
  interrupted: 'The tool host ended while this was running. It may have taken effect; it was not run again.',
  settled: 'This call was already answered, so it was not run again.',
  unreadable:
    'The tool host cannot read its journal, so the outcome is unknown. It may have taken effect; it was not run again.',
  busy: 'The tool host is busy. Try again later.',
  leftOut: '[These instructions are too long to be sent. Read the file.]',
  tooLarge: 'The result is too large to be sent. The call has taken effect.',
  tooManyFiles: `The files are more than ${maxAllBytes / 1024 ** 2} MiB, so they were not recreated.`,
  noWorkspace: (name: string) => `This tool host does not offer a workspace ${JSON.stringify(name)}.`,
  stopped: 'Stopped before it started: this call did not start.',
  notBegun: 'Not run: the process that sent it ended before it started.',
  noReach: (host: string) =>
    `The tool host does not allow commands to reach ${host}. Its owner can allow it: --allow "fetch ${host}".`,
  outside: (folder: string) => `The tool host does not allow this. It offers only what is in ${folder}.`,
  noTool: (name: string) => `This tool host has no tool ${JSON.stringify(name)}.`,
  failed: (error: unknown) => `The tool failed: ${error instanceof Error ? error.message : String(error)}`,
}

/** How a call ended. */
export type CallEnd = Extract<HostMessage, { type: 'done' | 'refused' | 'elsewhere' }>

/** One call on a tool host. It continues without a connection; several may watch it. */
export class HostedCall {
  readonly request: CallRequest
  readonly #deps: HostedCallDeps
  readonly #links = new Set<HostLink>()
  readonly #stop = new AbortController()
  readonly #records: HostRecord[] = []
  readonly #questions = new Map<number, (verdict: Verdict | undefined) => void>()
  #asked = 0
  /** The end of its output, and the offset of its first character. */
  #output = { off: 0, text: '' }

  constructor(request: CallRequest, deps: HostedCallDeps) {
    this.request = request
    this.#deps = deps
    if (request.isStopped) this.stop()
  }

  /** From now on, the connection gets the output after `from`, the questions and the end. */
  join(link: HostLink, from: number): void {
    this.#links.add(link)
    const { off, text } = this.#output
    const known = Math.max(0, from - off)
    if (known < text.length) send(link, this.#outputFrom(off + known, text.slice(known)))
  }

  leave(link: HostLink): void {
    this.#links.delete(link)
  }

  stop(): void {
    this.#stop.abort()
  }

  /** The process of the host ends: a command continues, and a later process finds it again. */
  suspend(): void {
    if (this.#checked().tool?.replay === 'reattach') this.#stop.abort(new SessionSuspended())
  }

  answer(question: number, verdict: Verdict | undefined): void {
    this.#questions.get(question)?.(verdict)
  }

  tell(message: HostMessage): void {
    for (const link of this.#links) send(link, message)
  }

  /** Runs the call, unless it ran before or is not allowed. */
  async begin({ isBusy }: { isBusy: boolean }): Promise<CallEnd> {
    const { request } = this
    const { journal } = this.#deps
    const state = await journal.state(request.session, request.id).catch(() => undefined)
    if (!state) return this.#done({ output: { content: hostTexts.unreadable, isError: true }, records: [] })
    if (state.type === 'done') return this.#done(state.result)
    if (state.type === 'settled') return this.#refused(hostTexts.settled)
    if (state.type === 'started') return this.continue(state.started.start)
    if (request.onlyAttach) return this.#neverBegin()
    if (isBusy) return this.#refused(hostTexts.busy)
    const allowed = await this.#allowed()
    if ('type' in allowed) return allowed
    const { checked, context } = allowed
    const start = (await checked.start?.(context)) ?? {}
    const { signal } = this.#stop
    // The next process of this host may start it.
    if (signal.reason instanceof SessionSuspended) throw signal.reason
    if (signal.aborted) return this.#refused(hostTexts.stopped)
    await journal.begin({ request, start })
    return this.#finish(() => checked.run(context))
  }

  /** The outcome of a call that an earlier process of this host started. */
  async continue(start: StartDetails): Promise<CallEnd> {
    const { tool, checked } = this.#checked()
    if (tool?.replay === 'reattach' && checked?.reattach) {
      if (keepsFromStarting(start, this.#deps.session)) return this.#startAgain(start)
      const { run: runId, call: callId, tool: name } = this.request
      return this.#finish(async () => checked.reattach?.({ runId, callId, name, ...start }, this.context()))
    }
    if (tool?.replay === 'safe' && checked) {
      // Its files may be others by now, and this process may allow less.
      const allowed = await this.#allowed()
      return 'type' in allowed ? this.#final(allowed) : this.#finish(() => allowed.checked.run(allowed.context))
    }
    return this.#finish(async () => ({ content: hostTexts.interrupted, isError: true }))
  }

  /** Of a command that an earlier process recorded and did not begin. This process may allow less, or want a sandbox. */
  async #startAgain(before: StartDetails): Promise<CallEnd> {
    const { request } = this
    const allowed = await this.#allowed()
    if ('type' in allowed) return this.#final(allowed)
    const { checked, context } = allowed
    const start = (await checked.start?.(context)) ?? {}
    await this.#deps.journal.replace({ request, start })
    await checked.settled?.(before, context)
    return this.#finish(() => checked.run(context))
  }

  /** A refusal of a recorded call is kept as its result, so that no later process starts it. */
  async #final(end: CallEnd): Promise<CallEnd> {
    return end.type === 'refused' ? this.#finish(async () => ({ content: end.reason, isError: true })) : end
  }

  /** The message that was to start it may still arrive. */
  async #neverBegin(): Promise<CallEnd> {
    await this.#deps.journal.begin({ request: this.request, start: {} })
    return this.#finish(async () => ({ content: hostTexts.notBegun, isError: true }))
  }

  /** What may run, or why nothing does. */
  async #allowed(): Promise<{ checked: CheckedCall; context: ToolContext } | CallEnd> {
    const { request } = this
    const { session, redactor } = this.#deps
    if (!session) return this.#refused(hostTexts.noWorkspace(request.workspace))
    const tool = session.tools.find(({ name }) => name === request.tool)
    if (!tool) return this.#refused(hostTexts.noTool(request.tool))
    const checked = tool.check(request.input, { cwd: session.folder })
    if (typeof checked === 'string') return this.#refused(checked)
    const { access } = checked
    // First: the service must not learn where links lead that leave the folder.
    const verdict = await session.judge({ tool, access, box: request.box })
    if ('refused' in verdict) return this.#refused(verdict.refused)
    if (filesIn(access) !== filesIn(request.judged)) {
      return { type: 'elsewhere', id: request.id, access: redactor.json([...access]) }
    }
    return { checked, context: this.context(verdict.box) }
  }

  /** The service has the result: removes what is only needed to find it again. */
  async settle(start: StartDetails): Promise<void> {
    await this.#checked().checked?.settled?.(start, this.context())
  }

  context(box?: BoxKind): ToolContext {
    const { request } = this
    const { redactor, clock, session, journal } = this.#deps
    const redaction = redactionOf(redactor)
    const live = redactor.stream()
    return {
      sessionId: request.session,
      runId: request.run,
      callId: request.call,
      cwd: session?.folder ?? '',
      signal: this.#stop.signal,
      clock,
      ...(box && { box }),
      ...(request.model && { model: request.model }),
      localFolder: session?.localFolder,
      append: async (draft) => void this.#records.push(recordOf(redaction.draft(draft))),
      putBlob: (bytes) => journal.putBlob(request, redaction.blob(bytes)),
      getBlob: async (sha256) => {
        const blob = (await journal.blobsOf(request)).find((each) => each.sha256 === sha256)
        if (!blob) throw new Error(`There is no blob ${sha256} on this host.`)
        return blob.bytes
      },
      observe: (printed) => this.#observe(live.write(printed)),
      // No person attends a host.
      ask: async () => ({ text: '', isCancelled: true }),
      reach: (target, withdrawn) => this.#reach(target, withdrawn),
      readmit: async () => ({ type: 'denied', reason: 'The call was not judged for this.' }),
    }
  }

  #checked(): { tool?: Tool; checked?: CheckedCall } {
    const { session } = this.#deps
    const tool = session?.tools.find(({ name }) => name === this.request.tool)
    const checked = tool?.check(this.request.input, { cwd: session?.folder ?? '' })
    return { ...(tool && { tool }), ...(typeof checked === 'object' && { checked }) }
  }

  /** From here on the call may have taken effect: whatever happens is its result. */
  async #finish(work: () => Promise<ToolOutput | undefined>): Promise<CallEnd> {
    const output = await work().catch((error: unknown): ToolOutput => {
      if (error instanceof SessionSuspended) throw error
      return { content: hostTexts.failed(error), isError: true }
    })
    this.#deps.session?.ended(this.request)
    const result = {
      output: this.#deps.redactor.json(outputOf(output)),
      ...(output?.exitCode !== undefined && { exitCode: output.exitCode }),
      records: this.#records,
    }
    // If it cannot be kept, for example on a full disk, it can still be sent.
    await this.#deps.journal.finish(this.request, result).catch(() => undefined)
    return this.#done(result)
  }

  async #done(result: Omit<CallOutcome, 'blobs'>): Promise<CallEnd> {
    const { id } = this.request
    const kept = await this.#deps.journal.blobsOf(this.request).catch(() => [])
    const blobs = kept.map(({ sha256, bytes }) => ({ sha256, data: bytes.toString('base64') }))
    const fits = (outcome: CallOutcome): boolean => Buffer.byteLength(JSON.stringify(outcome)) <= maxOutcomeBytes
    const whole = { ...result, blobs }
    if (fits(whole)) return { type: 'done', id, outcome: whole }
    // The content of changed files is worth less than the result.
    if (fits({ ...result, blobs: [] })) return { type: 'done', id, outcome: { ...result, blobs: [] } }
    return {
      type: 'done',
      id,
      outcome: { output: { content: hostTexts.tooLarge, isError: true }, records: [], blobs: [] },
    }
  }

  #refused(reason: string): CallEnd {
    return { type: 'refused', id: this.request.id, reason: this.#deps.redactor.text(reason) }
  }

  #observe(text: string): void {
    if (text === '') return
    const end = this.#output.off + this.#output.text.length
    this.tell(this.#outputFrom(end, text))
    const kept = (this.#output.text + text).slice(-keptOutput)
    this.#output = { off: end + text.length - kept.length, text: kept }
  }

  #outputFrom(off: number, text: string): HostMessage {
    return { type: 'output', id: this.request.id, off, text }
  }

  /** The service is asked only about what this host allows. */
  async #reach({ host, port }: HostTarget, withdrawn: AbortSignal): Promise<Verdict | undefined> {
    const { tool } = this.#checked()
    const access: Access[] = [{ type: 'connect', host, port, command: this.request.tool }]
    const verdict = tool && (await this.#deps.session?.judge({ tool, access, box: undefined }))
    if (!verdict || 'refused' in verdict) return { type: 'denied', reason: hostTexts.noReach(host) }
    const question = ++this.#asked
    const over = AbortSignal.any([this.#stop.signal, withdrawn])
    try {
      return await new Promise((resolve) => {
        if (over.aborted) return resolve(undefined)
        over.addEventListener('abort', () => resolve(undefined), { once: true })
        this.#questions.set(question, resolve)
        this.tell({ type: 'reach', id: this.request.id, question, host, port })
      })
    } finally {
      this.#questions.delete(question)
    }
  }
}

export function send(link: HostLink, message: HostMessage): void {
  link.send(JSON.stringify(message))
}

/** Whether a command was recorded and had not begun. From then on it cannot begin. */
function keepsFromStarting(start: StartDetails, session: HostedSession | undefined): boolean {
  // On another machine or after a restart, what is in the folder does not prove that it had not begun.
  if (!session || start.host !== hostname() || start.bootId !== currentBootId()) return false
  const folder = new Jobs().folderOf(start, session.localFolder)
  return folder !== undefined && existsSync(folder) && attach(folder).forestall()
}

/** The files that a call would touch, as text. The service judges by its rules what else it does. */
function filesIn(access: readonly Access[]): string {
  const files = access.flatMap((each) =>
    each.type === 'read' || each.type === 'write'
      ? [{ type: each.type, path: each.path, isRecursive: 'isRecursive' in each && each.isRecursive }]
      : [],
  )
  return JSON.stringify(files)
}

/** The service adds the ids of its own. */
function recordOf(draft: RecordDraft): HostRecord {
  switch (draft.type) {
    case 'file_read': {
      const { path, size } = draft.fileRead
      return { type: 'file_read', fileRead: { path, size } }
    }
    case 'file_write': {
      const { path, size, sha256Before, sha256After = '' } = draft.fileWrite
      return {
        type: 'file_write',
        fileWrite: { path, size, sha256After, ...(sha256Before !== undefined && { sha256Before }) },
      }
    }
    case 'blocked': {
      const { callId: _, ...blocked } = draft.blocked
      return { type: 'blocked', blocked }
    }
    default:
      throw new TypeError(`A tool on a host cannot add a line of type ${draft.type}.`)
  }
}
