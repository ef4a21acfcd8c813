import type { Session, ToolUse } from '@tapetree/session'
import { askUser, type PermissionRequest, type PermissionResult } from '../permissions/requests.ts'
import {
  SessionSuspended,
  type Access,
  type Answer,
  type BoxKind,
  type CheckedCall,
  type GateCall,
  type HostTarget,
  type Question,
  type StartDetails,
  type Tool,
  type ToolContext,
  type ToolOutput,
  type Verdict,
} from '../tools/tool.ts'
import { RunStopped } from './limits.ts'
import type { OpenRun } from './open-run.ts'
import { answerCall, outputOf, resultText } from './tool-results.ts'
import { settledWithin, untilAborted } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'

const maxSideBySide = 8

/** Runs the calls of one answer, in order. Each call has its result when this returns or throws, also after an abort. */
export async function runToolCalls(calls: readonly ToolUse[], open: OpenRun): Promise<void> {
  let rest = calls
  let reached: RunStopped | undefined
  while (rest.length > 0 && !open.signal.aborted && !isSteered(open)) {
    const group: ToolUse[] = []
    for (const call of nextGroup(rest, open)) {
      reached = limitBefore(open)
      if (reached) break
      group.push(call)
    }
    rest = rest.slice(group.length)
    await all(group.map((call) => runCall(call, open)))
    if (reached) break
  }
  const reason = open.signal.aborted
    ? resultText.aborted
    : reached
      ? resultText.limited(reached.message)
      : resultText.skipped
  for (const call of rest) await answerCall(call, { content: reason, isError: true }, open)
  open.signal.throwIfAborted()
  if (reached) throw reached
}

function isSteered(open: OpenRun): boolean {
  return open.deps.settings.steerPolicy !== 'after-batch' && open.nextSteer() !== undefined
}

/** The next call, or the next read-only calls, which run concurrently. */
function nextGroup(calls: readonly ToolUse[], open: OpenRun): readonly ToolUse[] {
  const firstWriting = calls.findIndex((call) => !open.tools.get(call.name)?.readOnly)
  const reading = firstWriting === -1 ? calls.length : firstWriting
  return calls.slice(0, Math.max(1, Math.min(reading, maxSideBySide)))
}

function limitBefore(open: OpenRun): RunStopped | undefined {
  try {
    open.spend('call')
    return undefined
  } catch (error) {
    if (error instanceof RunStopped) return error
    throw error
  }
}

/** Waits for all of them, also if one fails. */
async function all(work: Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((each) => each.status === 'rejected')
  if (failed) throw failed.reason as Error
}

async function runCall(call: ToolUse, open: OpenRun): Promise<void> {
  const repeated = open.repeated(call)
  if (repeated !== undefined) return refuse(repeated)
  const tool = open.tools.get(call.name)
  if (!tool) return refuse(resultText.unknown(call.name, open.tools.keys()))
  const given = await open.hooks.toolCall(call, open.signal)
  if (typeof given === 'string') return refuse(given)
  const checked = checkCall(given, tool, open)
  if (typeof checked === 'string') return refuse(checked)
  const verdict = await admit({ call: given, tool, checked }, open)
  if (verdict.type === 'denied') return refuse(verdict.reason)
  const isChanged = given !== call
  const { box } = verdict
  await startCall({ call: given, tool, checked, box }, open, isChanged ? { input: given.input } : {})

  function refuse(content: string): Promise<void> {
    return answerCall(call, { content, isError: true }, open)
  }
}

/** The checked call, or a message for the model that says what is wrong with it. */
export function checkCall(call: ToolUse, tool: Tool, open: OpenRun): CheckedCall | string {
  try {
    return tool.check(call.input, toolContextOf(open, call, open.signal))
  } catch (error) {
    return resultText.failed(error)
  }
}

interface AdmittedCall {
  call: ToolUse
  tool: Tool
  checked: CheckedCall
  /** The sandbox in which the gate allowed it. */
  box?: BoxKind | undefined
}

/** Asks the gate. The call has not started yet, so a steer or an abort withdraws the question. */
async function admit(
  { call, tool, checked }: Pick<AdmittedCall, 'call' | 'tool'> & { checked: Pick<CheckedCall, 'access' | 'preflight'> },
  open: OpenRun,
): Promise<Verdict> {
  const steered = steering(open)
  const { id: callId, name, input } = call
  const asked: GateCall = {
    runId: open.runId,
    callId,
    tool: name,
    readOnly: tool.readOnly,
    input,
    access: checked.access,
    ...(checked.preflight && {
      preflight: async () => checked.preflight?.(toolContextOf(open, call, open.signal)),
    }),
  }
  try {
    return await open.deps.gate.admit(asked, AbortSignal.any([open.signal, steered.signal]))
  } catch (error) {
    if (open.signal.aborted) return { type: 'denied', reason: resultText.aborted }
    if (steered.signal.aborted) return { type: 'denied', reason: resultText.skipped }
    throw error
  } finally {
    steered.stop()
  }
}

/** Runs the call after `tool_start` is durable. From then on the call may have taken effect. */
async function startCall(
  { call, tool, checked, box }: AdmittedCall,
  open: OpenRun,
  changed: { input?: ToolUse['input'] },
): Promise<void> {
  const { runId, signal } = open
  const { files } = open.deps
  let start: StartDetails = {}
  try {
    if (files) await untilAborted(files.beforeCall({ runId, callId: call.id, access: checked.access }), signal)
    open.throwIfStopped()
    start = (await checked.start?.({ ...toolContextOf(open, call, signal), ...(box && { box }) })) ?? {}
    open.throwIfStopped()
  } catch (error) {
    if (error instanceof SessionSuspended) throw error
    const content = signal.aborted ? resultText.aborted : resultText.failed(error)
    return answerCall(call, { content, isError: true }, open)
  }
  const toolStart = { runId, callId: call.id, name: call.name, ...start, ...changed }
  await open.append({ type: 'tool_start', toolStart })
  await finishCall(call, { tool, checked, start }, open, (toolContext) =>
    asOwner(open.deps.session, () => checked.run({ ...toolContext, ...(box && { box }) })),
  )
}

/** Does work that must not happen twice. This process may have been paused before, so that another one owns the session: rejects then. */
export async function asOwner<T>(session: Session, work: () => Promise<T>): Promise<T> {
  // Nothing may be awaited after the last check.
  for (let unsure; (unsure = session.confirmOwner());) await unsure
  return work()
}

interface StartedCall {
  tool: Tool
  checked: CheckedCall
  start: StartDetails
}

/** Waits for a call that has started, in this process or an earlier one, and appends its result. */
export async function finishCall(
  call: ToolUse,
  { tool, checked, start }: StartedCall,
  open: OpenRun,
  work: (toolContext: ToolContext) => Promise<ToolOutput>,
): Promise<void> {
  const interrupt = new AbortController()
  const stopWatching = open.onSteer(() => {
    if (open.deps.settings.steerPolicy === 'interrupt') interrupt.abort()
  })
  const signal = AbortSignal.any([open.signal, interrupt.signal])
  try {
    const stopped = (): string => (open.signal.aborted ? resultText.stopped : resultText.interrupted)
    const { deadlineMs } = tool
    const output = await runWithDeadline({ deadlineMs, clock: open.deps.clock, signal, stopped }, (inner) =>
      work(toolContextOf(open, call, inner)),
    )
    const result = await open.hooks.toolResult(call, outputOf(output), open.signal)
    await answerCall(call, outputOf(result), open)
    open.deps.files?.afterCall({ runId: open.runId, callId: call.id, access: checked.access })
    open.deps.diagnostics?.afterCall(checked.access)
    // The result is durable: a failed cleanup does no harm.
    await Promise.try(() => checked.settled?.(start, toolContextOf(open, call, open.signal))).catch(() => undefined)
  } finally {
    stopWatching()
  }
}

export function toolContextOf(open: OpenRun, call: ToolUse, signal: AbortSignal): ToolContext {
  const { session, cwd, redactor, clock, observe } = open.deps
  const { runId, model } = open
  const live = redactor?.stream()
  let off = 0
  return {
    sessionId: session.id,
    runId,
    callId: call.id,
    cwd,
    signal,
    clock,
    model: { provider: model.provider, id: model.id, hasImages: model.limits.hasImages !== false },
    localFolder: session.localFolder,
    append: (record) => open.append(record),
    putBlob: (bytes) => session.putBlob(bytes),
    getBlob: (sha256) => session.getBlob(sha256),
    observe: (output) => {
      const text = live ? live.write(output) : output
      if (text === '') return
      observe({ type: 'delta', item: call.id, part: 0, kind: 'tool_output', off, text, run: runId })
      off += text.length
    },
    ask: (question) => ask(open, call, question, signal),
    reach: (target, withdrawn) => reach(open, call, target, AbortSignal.any([signal, withdrawn])),
    readmit: (access) => readmit(open, call, access),
  }
}

/** The call has not acted, so a steer or an abort withdraws the question. */
async function readmit(open: OpenRun, call: ToolUse, access: readonly Access[]): Promise<Verdict> {
  const tool = open.tools.get(call.name)
  if (!tool) return { type: 'denied', reason: resultText.unknown(call.name, open.tools.keys()) }
  return admit({ call, tool, checked: { access } }, open)
}

/** The command has started, so a steer withdraws only the question. */
async function reach(
  open: OpenRun,
  { id: callId, name: tool, input }: ToolUse,
  target: HostTarget,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  const command = typeof input['command'] === 'string' ? input['command'] : tool
  const access: Access[] = [{ type: 'connect', ...target, command }]
  const { host } = target
  const asked = { runId: open.runId, callId, tool, readOnly: false, input: { ...input, host }, access }
  const steered = steering(open)
  try {
    return await open.deps.gate.admit(asked, AbortSignal.any([signal, steered.signal]))
  } catch (error) {
    if (signal.aborted || steered.signal.aborted) return undefined
    throw error
  } finally {
    steered.stop()
  }
}

/** Aborts when the user sends a message, unless such messages wait for the calls. */
function steering(open: OpenRun): { signal: AbortSignal; stop: () => void } {
  const steered = new AbortController()
  const stop = open.onSteer(() => {
    if (open.deps.settings.steerPolicy !== 'after-batch') steered.abort()
  })
  return { signal: steered.signal, stop }
}

async function ask(open: OpenRun, call: ToolUse, question: Question, signal: AbortSignal): Promise<Answer> {
  if (open.deps.isUnattended) return { text: '', isCancelled: true }
  const asker = { runId: open.runId, callId: call.id, tool: call.name, input: call.input }
  return askUser(question, asker, (request) => askUnlessSteered(open, request, signal))
}

/** Returns undefined if a steer came first: the user need not answer the question, and it is withdrawn. */
async function askUnlessSteered(
  open: OpenRun,
  request: Omit<PermissionRequest, 'requestId'>,
  signal: AbortSignal,
): Promise<PermissionResult | undefined> {
  const steered = steering(open)
  try {
    return await open.deps.requests.ask(request, AbortSignal.any([signal, steered.signal]))
  } catch (error) {
    if (signal.aborted || !steered.signal.aborted) throw error
    return undefined
  } finally {
    steered.stop()
  }
}

/** How long a stopped tool has to return what it did so far. */
const graceMs = 5000

interface Deadline {
  deadlineMs: number
  clock: Clock
  signal: AbortSignal
  /** The result of a tool that the signal stopped. */
  stopped: () => string
}

/**
 * The output of a tool that respects its deadline and the signal; otherwise a sentence on what happened. A tool that
 * throws, hangs or ignores the signal does not hold up the run.
 */
export async function runWithDeadline(
  { deadlineMs, clock, signal, stopped }: Deadline,
  work: (signal: AbortSignal) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  const overdue = new AbortController()
  const output = Promise.try(work, AbortSignal.any([signal, overdue.signal]))
  const first = await settledWithin(output, { ms: deadlineMs, clock, signal })
  if (first === 'late') overdue.abort(new Error('the tool exceeded its deadline'))
  const isGivenUp = first !== 'settled' && (await settledWithin(output, { ms: graceMs, clock })) === 'late'
  try {
    if (!isGivenUp) return await output
  } catch (error) {
    // The next process waits for it.
    if (error instanceof SessionSuspended) throw error
    if (first === 'settled' && !signal.aborted) return { content: resultText.failed(error), isError: true }
  }
  return { content: first === 'late' ? resultText.overdue(deadlineMs) : stopped(), isError: true }
}
