import { newId, text, type Content, type Message, type Session, type ToolUse, type Usage } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { Clock } from '@tapetree/session/util/wait'
import { imagesOf, inlineImages } from '../prompt/images.ts'
import { openRegularFile } from '../tools/files/confirm-path.ts'
import { realPathOf } from '../tools/files/paths.ts'
import { decodeTextFile } from '../tools/files/text-file.ts'
import {
  SessionSuspended,
  type Access,
  type GateCall,
  type Tool,
  type ToolContext,
  type ToolOutput,
  type Verdict,
} from '../tools/tool.ts'
import { Answer } from './answer.ts'
import {
  foreignApi,
  type ForeignCommand,
  type ForeignCommandOptions,
  type ForeignRun,
  type ForeignSteer,
} from './foreign-agent.ts'
import { RunStopped } from './limits.ts'
import type { OpenRun } from './open-run.ts'
import { positionOf } from './position.ts'
import { deliverSteers } from './request.ts'
import type { SteerPolicy } from './run-settings.ts'
import { asOwner, toolContextOf } from './tool-calls.ts'
import { answerCall, resultText } from './tool-results.ts'

/** Longer answers become several entries: their bytes in a line of the log, not counting the last part, which may move to a blob. */
const maxAnswerBytes = 128 * 1024
/** What a part has besides its text. */
const partBytes = 64
/** An agent that says more in one turn, with its calls, is stopped. */
const maxTurnLength = 16 * 1024 * 1024

const maxFileBytes = 10 * 1024 * 1024

type Foreign = NonNullable<OpenRun['deps']['foreign']>

/** A run as its foreign agent sees it. */
export class OpenForeignRun implements ForeignRun {
  readonly signal: AbortSignal
  readonly #open: OpenRun
  readonly #foreign: Foreign
  readonly #calls = new Map<string, ToolUse>()
  /** Of the calls with live output. Each redacts its output as a whole: a key may arrive in two pieces. */
  readonly #shown = new Map<string, ToolContext>()
  #answer: OpenAnswer | undefined
  /** The agent has ended a turn, and did not die in it. */
  hasEndedTurn = false
  #turnLength = 0

  constructor(open: OpenRun, foreign: Foreign) {
    this.#open = open
    this.#foreign = foreign
    this.signal = AbortSignal.any([open.signal, foreign.leaving])
  }

  get runId(): string {
    return this.#open.runId
  }

  get session(): Session {
    return this.#open.deps.session
  }

  get cwd(): string {
    return this.#open.deps.cwd
  }

  get clock(): Clock {
    return this.#open.deps.clock
  }

  get steerPolicy(): SteerPolicy {
    return this.#open.deps.settings.steerPolicy
  }

  get head(): string | null {
    return this.#open.head
  }

  get isSuspended(): boolean {
    return this.signal.reason instanceof SessionSuspended
  }

  get openCalls(): readonly ToolUse[] {
    return [...this.#calls.values()]
  }

  async messages(): Promise<Message[]> {
    const { messages } = await this.session.getContext({ leafId: await this.#open.storedHead() })
    const given = messages.map(({ message }) => message)
    return inlineImages(given, (sha256) => this.session.getBlob(sha256))
  }

  async settle(): Promise<void> {
    await settleForeign(this.#open, resultText.unknownOutcome)
  }

  async isSettled(): Promise<boolean> {
    const { isSettled, entry } = await positionOf(this.session)
    return isSettled && entry?.message.runId === this.runId && entry.message.stopReason !== 'pause'
  }

  beginTurn(): void {
    this.#open.spend('request')
    this.#turnLength = 0
  }

  async say(kind: 'text' | 'reasoning', text: string): Promise<void> {
    this.#count(text.length)
    if (this.#answer && this.#answer.bytes > maxAnswerBytes) await this.endAnswer('pause')
    this.#answer ??= new OpenAnswer(this.#open)
    this.#answer.say(kind, text)
  }

  async call(call: ToolUse): Promise<void> {
    this.#open.spend('call')
    const bytes = bytesOf(call)
    this.#count(bytes)
    if (this.#answer && this.#answer.bytes + bytes > maxAnswerBytes) await this.endAnswer('pause')
    this.#answer ??= new OpenAnswer(this.#open)
    this.#calls.set(call.id, call)
    await this.#append([...this.#answer.end(), { type: 'tool_use', toolUse: call }], { stopReason: 'tool-calls' })
  }

  async endAnswer(stopReason: string, usage?: Usage): Promise<void> {
    if (stopReason !== 'pause') this.hasEndedTurn = true
    const content = this.#answer?.end() ?? []
    if (content.length > 0) return this.#append(content, { stopReason, ...(usage && { usage }) })
    await this.#forgetAnswer()
    if (!usage) return
    const { name: model } = this.#foreign.agent
    await this.#open.append({ type: 'usage', usage: { purpose: 'turn', provider: foreignApi, model, tokens: usage } })
  }

  async failAnswer(error: { kind: string; message: string }): Promise<void> {
    const { runId } = this
    const answer = this.#answer
    const content = answer?.end() ?? []
    if (answer && content.length > 0) {
      await this.#open.append({ type: 'attempt', attempt: { runId, item: answer.item, content, error } })
    }
    await this.#forgetAnswer()
  }

  async startCall({ id: callId, name }: ToolUse, access: readonly Access[]): Promise<void> {
    const { runId } = this
    await this.#open.deps.files?.beforeCall({ runId, callId, access })
    await this.#open.append({ type: 'tool_start', toolStart: { runId, callId, name } })
  }

  async answerCall(call: ToolUse, output: ToolOutput, access: readonly Access[]): Promise<void> {
    await this.#answerCall(call, output)
    const { files, diagnostics } = this.#open.deps
    files?.afterCall({ runId: this.runId, callId: call.id, access })
    diagnostics?.afterCall(access)
  }

  showOutput(call: ToolUse, text: string): void {
    const context = this.#shown.get(call.id) ?? toolContextOf(this.#open, call, this.signal)
    this.#shown.set(call.id, context)
    context.observe(text)
  }

  async append(draft: EntryDraft | RecordDraft): Promise<void> {
    await this.#open.append(draft)
  }

  admit(call: Omit<GateCall, 'runId'>, signal: AbortSignal): Promise<Verdict> {
    return this.#open.deps.gate.admit({ ...call, runId: this.runId }, signal)
  }

  async readFile(path: string, signal: AbortSignal): Promise<string> {
    const real = realPathOf(path, this)
    const call = this.#own('read', { path })
    await this.#permit(call, { access: [{ type: 'read', path: real }], readOnly: true }, signal)
    await using file = await openRegularFile(real)
    const { size } = await file.stat()
    if (size > maxFileBytes) throw new Error(`${path} has ${size} bytes; at most ${maxFileBytes} can be read.`)
    const read = decodeTextFile(await file.readFile())
    if (!read) throw new Error(`${path} is not a text file.`)
    await this.append({ type: 'file_read', fileRead: { path: real, size, runId: this.runId } })
    return read.text
  }

  async writeFile(path: string, content: string, signal: AbortSignal): Promise<void> {
    const tool = this.#open.tools.get('write')
    if (!tool) throw new Error('Files cannot be written in this permission mode.')
    const { checked, context } = await this.#checked(tool, { path, content }, { asking: signal, signal, cwd: this.cwd })
    const { runId } = this
    const { access } = checked
    await this.#open.deps.files?.beforeCall({ runId, callId: context.callId, access })
    const output = await asOwner(this.#open.deps.session, () => checked.run(context))
    this.#open.deps.files?.afterCall({ runId, callId: context.callId, access })
    if (output.isError) throw new Error(textOf(output))
  }

  async startCommand(
    command: string,
    { cwd, asking, signal, onOutput }: ForeignCommandOptions,
  ): Promise<ForeignCommand> {
    const tool = this.#foreign.terminal
    const { checked, context } = await this.#checked(tool, { command }, { asking, signal, cwd })
    const observed = { ...context, observe: onOutput }
    const start = (await checked.start?.(observed)) ?? {}
    const run = asOwner(this.#open.deps.session, () => checked.run(observed))
    const done = run.then(({ exitCode }) => (exitCode === undefined ? {} : { exitCode }))
    const over = run.catch(() => undefined).then(() => checked.settled?.(start, observed))
    over.catch(() => undefined)
    return { done }
  }

  onSteer(listener: () => void): () => void {
    return this.#open.onSteer(listener)
  }

  async nextSteer(): Promise<ForeignSteer | undefined> {
    const waiting = this.#open.nextSteer()
    if (!waiting) return undefined
    const { id, message: said } = waiting
    const content = [text(said), ...(await imagesOf(waiting, this.session))]
    const [message] = await inlineImages([{ role: 'user', content }], (sha256) => this.session.getBlob(sha256))
    return message && { id, text: said, message }
  }

  async deliverSteer({ id, text: said }: ForeignSteer): Promise<void> {
    await this.endAnswer('pause')
    const waiting = this.#open.nextSteer()
    if (waiting?.id === id && waiting.message === said) await this.#open.deliver(waiting)
  }

  deliverSteers(): Promise<boolean> {
    return deliverSteers(this.#open)
  }

  #count(length: number): void {
    this.#turnLength += length
    if (this.#turnLength <= maxTurnLength) return
    throw new RunStopped('flood', `The agent said more than ${maxTurnLength} characters in one turn.`)
  }

  async #append(content: Content[], more: Partial<Message>): Promise<void> {
    const { name: model } = this.#foreign.agent
    const { item: id } = this.#answer ?? { item: newId() }
    const { runId } = this
    const message: Message = {
      role: 'assistant',
      content,
      model,
      provider: foreignApi,
      api: foreignApi,
      runId,
      ...more,
    }
    await this.#open.append({ type: 'message', id, message })
    await this.#forgetAnswer()
  }

  async #forgetAnswer(): Promise<void> {
    this.#answer = undefined
    await this.#open.draft.clear()
  }

  async #answerCall(call: ToolUse, output: ToolOutput): Promise<void> {
    await answerCall(call, output, this.#open)
    this.#calls.delete(call.id)
    this.#shown.delete(call.id)
  }

  /** A call of ours for the agent. */
  #own(name: string, input: ToolUse['input']): ToolUse {
    return { id: newId(), name, input }
  }

  async #checked(
    tool: Tool,
    input: ToolUse['input'],
    { asking, signal, cwd }: { asking: AbortSignal; signal: AbortSignal; cwd: string },
  ): Promise<{ checked: Exclude<ReturnType<Tool['check']>, string>; context: ToolContext }> {
    const call = this.#own(tool.name, input)
    const checked = tool.check(input, { cwd })
    if (typeof checked === 'string') throw new Error(checked)
    const { box } = await this.#permit(call, { access: checked.access, readOnly: tool.readOnly }, asking)
    const context = { ...toolContextOf(this.#open, call, signal), cwd, ...(box && { box }) }
    return { checked, context }
  }

  async #permit(
    { id: callId, name: tool, input }: ToolUse,
    what: Pick<GateCall, 'access' | 'readOnly'>,
    signal: AbortSignal,
  ): Promise<Extract<Verdict, { type: 'allowed' }>> {
    const verdict = await this.admit({ callId, tool, input, ...what }, signal)
    if (verdict.type === 'denied') throw new Error(verdict.reason)
    signal.throwIfAborted()
    return verdict
  }
}

/** Answers the open calls of a foreign agent, and withdraws its questions. */
export async function settleForeign(open: OpenRun, content: string): Promise<void> {
  const { session, requests } = open.deps
  const { openCalls, entry } = await positionOf(session)
  // Calls of a run that is over have their results on another branch.
  const isElsewhere = entry?.message.runId !== open.runId
  const output = { content: isElsewhere ? resultText.otherBranch : content, isError: true }
  for (const call of openCalls) await answerCall(call, output, open)
  for (const { requestId } of requests.pending) await requests.answer({ requestId, outcome: 'cancelled' })
}

function textOf({ content }: ToolOutput): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

/** In a line of the log. */
function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}

/** An answer while it is streamed. */
class OpenAnswer {
  readonly item = newId()
  readonly #open: OpenRun
  readonly #answer: Answer
  readonly #redacted: ReturnType<NonNullable<OpenRun['deps']['redactor']>['stream']>[] = []
  #part = -1
  #kind: 'text' | 'reasoning' | undefined
  bytes = 0

  constructor(open: OpenRun) {
    this.#open = open
    this.#answer = new Answer(this.item, open.runId)
  }

  say(kind: 'text' | 'reasoning', text: string): void {
    if (this.#kind !== kind) {
      this.#flush()
      this.#kind = kind
      this.#part++
      this.bytes += partBytes
    }
    this.bytes += bytesOf(text)
    const { redactor } = this.#open.deps
    if (!redactor) return this.#take(text)
    this.#redacted[0] ??= redactor.stream()
    this.#take(this.#redacted[0].write(text))
  }

  end(): Content[] {
    this.#flush()
    return this.#answer.content
  }

  /** Text that could have been the beginning of a key was held back. */
  #flush(): void {
    const [stream] = this.#redacted.splice(0)
    if (stream) this.#take(stream.end())
  }

  #take(text: string): void {
    const live = this.#answer.take({
      type: this.#kind === 'text' ? 'text_delta' : 'reasoning_delta',
      part: this.#part,
      text,
    })
    if (!live) return
    this.#open.draft.add(live)
    this.#open.deps.observe(live)
  }
}
