import type { ToolUse } from '@tapetree/session'
import type { GateCall, CheckedCall, StartDetails, Tool, ToolOutput } from '../tools/tool.ts'
import type { LoopContext } from './loop-context.ts'
import { RunStopped } from './limits.ts'
import { runWithDeadline } from './tool-deadline.ts'
import { answerCall, outputOf, words } from './tool-results.ts'

const maxSideBySide = 8

/** Carries out the calls of one answer, in their order. Each has its result when this returns or throws, whatever happens. */
export async function runToolCalls(calls: readonly ToolUse[], context: LoopContext): Promise<void> {
  let rest = calls
  let reached: RunStopped | undefined
  while (rest.length > 0 && !context.signal.aborted && !isSteered(context)) {
    const group: ToolUse[] = []
    for (const call of nextGroup(rest, context)) {
      reached = limitBefore(context)
      if (reached) break
      group.push(call)
    }
    rest = rest.slice(group.length)
    await all(group.map((call) => runCall(call, context)))
    if (reached) break
  }
  const reason = context.signal.aborted ? words.aborted : reached ? words.limited(reached.message) : words.skipped
  for (const call of rest) await answerCall(call, { content: reason, isError: true }, context)
  context.signal.throwIfAborted()
  if (reached) throw reached
}

function isSteered(context: LoopContext): boolean {
  return context.steerPolicy !== 'after-batch' && context.nextSteer() !== undefined
}

/** One call, or as many as only read and may go side by side. */
function nextGroup(calls: readonly ToolUse[], context: LoopContext): readonly ToolUse[] {
  const firstWriting = calls.findIndex((call) => !context.tools.get(call.name)?.readOnly)
  const reading = firstWriting === -1 ? calls.length : firstWriting
  return calls.slice(0, Math.max(1, Math.min(reading, maxSideBySide)))
}

function limitBefore(context: LoopContext): RunStopped | undefined {
  try {
    context.spend('call')
    return undefined
  } catch (error) {
    if (error instanceof RunStopped) return error
    throw error
  }
}

/** Waits for all of them, also when one fails: none goes on unseen. */
async function all(work: Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((each) => each.status === 'rejected')
  if (failed) throw failed.reason as Error
}

async function runCall(call: ToolUse, context: LoopContext): Promise<void> {
  const repeated = context.repeated(call)
  if (repeated !== undefined) return refuse(repeated)
  const tool = context.tools.get(call.name)
  if (!tool) return refuse(words.unknown(call.name, context.tools.keys()))
  const given = await context.beforeCall(call)
  if (typeof given === 'string') return refuse(given)
  const checked = checkCall(given, tool, context)
  if (typeof checked === 'string') return refuse(checked)
  const refusal = await admit({ call: given, tool, checked }, context)
  if (refusal !== undefined) return refuse(refusal)
  const isChanged = given !== call
  await startCall({ call: given, tool, checked }, context, isChanged ? { input: given.input } : {})

  function refuse(content: string): Promise<void> {
    return answerCall(call, { content, isError: true }, context)
  }
}

/** The call as its tool understands it, or a sentence on what is wrong. */
export function checkCall(call: ToolUse, tool: Tool, context: LoopContext): CheckedCall | string {
  try {
    return tool.check(call.input, context.toolContext(call, context.signal))
  } catch (error) {
    return words.failed(error)
  }
}

interface AdmittedCall {
  call: ToolUse
  tool: Tool
  checked: CheckedCall
}

/** Asks the gate. A call that waits for leave has not started: whoever steers or stops need not answer it first. */
async function admit({ call, tool, checked }: AdmittedCall, context: LoopContext): Promise<string | undefined> {
  const steered = new AbortController()
  const stopWatching = context.onSteer(() => {
    if (context.steerPolicy !== 'after-batch') steered.abort()
  })
  const { id: callId, name, input } = call
  const asked: GateCall = {
    runId: context.runId,
    callId,
    tool: name,
    readOnly: tool.readOnly,
    input,
    access: checked.access,
    ...(checked.preflight && {
      preflight: async () => checked.preflight?.(context.toolContext(call, context.signal)),
    }),
  }
  try {
    const verdict = await context.gate.admit(asked, AbortSignal.any([context.signal, steered.signal]))
    return verdict.type === 'denied' ? verdict.reason : undefined
  } catch (error) {
    if (context.signal.aborted) return words.aborted
    if (steered.signal.aborted) return words.skipped
    throw error
  } finally {
    stopWatching()
  }
}

/** `tool_start` is durable before anything happens; from there on the call may take effect. */
async function startCall(
  { call, tool, checked }: AdmittedCall,
  context: LoopContext,
  changed: { input?: ToolUse['input'] },
): Promise<void> {
  const { runId } = context
  let start: StartDetails = {}
  try {
    start = (await checked.start?.(context.toolContext(call, context.signal))) ?? {}
  } catch (error) {
    const content = context.signal.aborted ? words.aborted : words.failed(error)
    return answerCall(call, { content, isError: true }, context)
  }
  const toolStart = { runId, callId: call.id, name: call.name, ...start, ...changed }
  await context.append({ type: 'tool_start', toolStart })
  await finishCall(call, { tool, checked, start }, context, (toolContext) => checked.run(toolContext))
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
  context: LoopContext,
  work: (toolContext: ReturnType<LoopContext['toolContext']>) => Promise<ToolOutput>,
): Promise<void> {
  const interrupt = new AbortController()
  const stopWatching = context.onSteer(() => {
    if (context.steerPolicy === 'interrupt') interrupt.abort()
  })
  const signal = AbortSignal.any([context.signal, interrupt.signal])
  try {
    const stopped = (): string => (context.signal.aborted ? words.stopped : words.interrupted)
    const { deadlineMs } = tool
    const output = await runWithDeadline({ deadlineMs, clock: context.clock, signal, stopped }, (inner) =>
      work(context.toolContext(call, inner)),
    )
    await answerCall(call, outputOf(await context.afterCall(call, outputOf(output))), context)
    // The result is durable: what could not be tidied up is in nobody's way.
    await Promise.try(() => checked.settled?.(start, context.toolContext(call, context.signal))).catch(() => undefined)
  } finally {
    stopWatching()
  }
}
