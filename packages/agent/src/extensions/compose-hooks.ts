import { settledWithin } from '@tapetree/session/util/deadline'
import type { HookEvents, HookName, HookResults } from './extension.ts'
import { messageOf } from '../util/message-of.ts'
import { ExtensionFailure } from './extension-failure.ts'
import { readResult } from './handler-results.ts'
import type { Hooks, HookSession, TurnChanges, TurnEvent } from '../run/hooks.ts'
import type { LoadedExtension } from './loaded-extension.ts'
import type { OfferedHandler } from './runner.ts'
import type { Message } from '@tapetree/session'

export interface ComposeOptions {
  /** In load order, which is the order of their handlers. */
  extensions: readonly LoadedExtension[]
  session: HookSession | undefined
  /** For handlers without their own limit. */
  limitMs: number
}

/** Runs the handlers of all extensions one after another, in order. Each receives the result of the previous one. */
export function composeHooks(options: ComposeOptions): Hooks {
  const { extensions } = options

  /** The answers of the handlers, in order; skips those that have none or failed. */
  async function* answers<Name extends HookName>(
    hook: Name,
    event: () => HookEvents[Name],
    { signal, isWaitedFor = false }: { signal?: AbortSignal | undefined; isWaitedFor?: boolean } = {},
  ): AsyncGenerator<Answered<Name>> {
    for (const extension of extensions) {
      for (const handler of extension.handlersOf(hook)) {
        if (signal?.aborted && !isWaitedFor) return
        const call = { extension, handler, hook, event: event(), signal, isWaitedFor }
        const result = await callHandler(call, options)
        if (result !== undefined) yield { extension, result }
      }
    }
  }

  async function tell<Name extends 'sessionStart' | 'sessionEnd'>(hook: Name, event: HookEvents[Name]): Promise<void> {
    for await (const _ of answers(hook, () => event));
  }

  async function changeTurn(
    hook: 'turnStart' | 'turnEnd',
    turn: TurnEvent,
    signal: AbortSignal | undefined,
  ): Promise<TurnChanges> {
    let { systemPrompt } = turn
    const messages: string[] = []
    for await (const { result } of answers(hook, () => ({ ...turn, systemPrompt }), { signal })) {
      if (result.systemPrompt !== undefined) systemPrompt = result.systemPrompt
      if (result.message !== undefined) messages.push(result.message)
    }
    return systemPrompt === turn.systemPrompt ? { messages } : { systemPrompt, messages }
  }

  return {
    sessionStart: (session) => tell('sessionStart', session),
    sessionEnd: (session) => tell('sessionEnd', session),
    turnStart: (turn, signal) => changeTurn('turnStart', turn, signal),
    turnEnd: (turn, signal) => changeTurn('turnEnd', turn, signal),

    async beforeAgentStart(start, signal) {
      let { systemPrompt, prompt } = start
      const messages: string[] = []
      const changedBy = new Set<string>()
      const event = (): typeof start => ({ ...start, systemPrompt, prompt })
      for await (const { extension, result } of answers('beforeAgentStart', event, { signal })) {
        if (result.systemPrompt !== undefined) systemPrompt = result.systemPrompt
        if (result.message !== undefined) messages.push(result.message)
        // A run that is continued has no prompt to change.
        if (result.prompt === undefined || start.prompt === '') continue
        prompt = result.prompt
        changedBy.add(extension.name)
      }
      if (prompt === start.prompt) return { systemPrompt, messages }
      return { systemPrompt, messages, prompt: { text: prompt, changedBy: [...changedBy] } }
    },

    /** Stops at the first handler that blocks the call. */
    async toolCall(given, signal) {
      let call = given
      for await (const { result } of answers('toolCall', () => ({ call }), { signal })) {
        if ('block' in result) return result.block
        call = { ...call, input: result.input }
      }
      // Some handlers may not have run.
      return signal?.aborted ? 'Not run: the user stopped the run.' : call
    },

    /** The result of a stopped call is stored too, so handlers that redact results are awaited. */
    async toolResult(call, given, signal) {
      let output = given
      const event = (): HookEvents['toolResult'] => ({ call, output })
      for await (const { result } of answers('toolResult', event, { signal, isWaitedFor: true })) {
        output = { ...output, ...result }
      }
      return output
    },

    async context(given, signal) {
      let messages = given
      const changedBy = new Set<string>()
      for await (const { extension, result } of answers('context', () => ({ messages: [...messages] }), { signal })) {
        const problem = unpaired(result.messages)
        if (problem === undefined) {
          messages = result.messages
          changedBy.add(extension.name)
        } else {
          extension.fail(
            'context',
            new ExtensionFailure('wrong-value', `Its messages are not valid for any provider. ${problem}`),
          )
        }
      }
      return { messages, changedBy: [...changedBy] }
    },

    /** Stops at the first handler that cancels it. */
    async beforeCompact(compaction, signal) {
      let { instructions } = compaction
      const event = (): typeof compaction => ({ ...compaction, ...(instructions !== undefined && { instructions }) })
      for await (const { extension, result } of answers('beforeCompact', event, { signal })) {
        if ('cancel' in result) return { cancelledBy: extension.name }
        instructions = result.instructions
      }
      return instructions === undefined ? {} : { instructions }
    },
  }
}

interface Answered<Name extends HookName> {
  extension: LoadedExtension
  result: Exclude<HookResults[Name], void>
}

interface HandlerCall<Name extends HookName> {
  extension: LoadedExtension
  handler: OfferedHandler
  hook: Name
  event: HookEvents[Name]
  signal: AbortSignal | undefined
  /** Runs to its end even if the signal aborts; only its questions are withdrawn. */
  isWaitedFor: boolean
}

/** Never rejects. A handler that is still busy on abort continues alone, within its time limit. */
async function callHandler<Name extends HookName>(
  { extension, handler, hook, event, signal, isWaitedFor }: HandlerCall<Name>,
  { session, limitMs }: ComposeOptions,
): Promise<Exclude<HookResults[Name], void> | undefined> {
  const { index, limitMs: ownMs = limitMs } = handler
  const call = extension
    .invoke(
      { type: 'handler', index, event },
      { limitMs: ownMs, session, ...(isWaitedFor ? { askSignal: signal } : { signal }) },
    )
    .then((value) => readResult(hook, value))
    .catch((error: unknown) => {
      const failure = error instanceof ExtensionFailure ? error : new ExtensionFailure('threw', messageOf(error))
      // Stopping on abort is not a failure.
      if (!(signal?.aborted && failure.kind === 'threw')) extension.fail(hook, failure)
      return undefined
    })
  const isLeftAlone = !isWaitedFor && (await settledWithin(call, { signal })) === 'aborted'
  const result = isLeftAlone ? undefined : await call
  return (result ?? undefined) as Exclude<HookResults[Name], void> | undefined
}

/**
 * Providers reject a call without its result, and a result without its call. Returns a sentence about the first
 * one, if any.
 */
function unpaired(messages: readonly Message[]): string | undefined {
  const open = new Set<string>()
  for (const { role, content } of messages) {
    const results = content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult.toolUseId] : []))
    const orphan = results.find((id) => !open.has(id))
    if (orphan !== undefined) return `The result of call ${orphan} does not follow its call.`
    for (const id of results) open.delete(id)
    const [unanswered] = open
    // Results must directly follow their calls.
    if (unanswered !== undefined && results.length === 0) return `Call ${unanswered} has no result.`
    if (role !== 'assistant') continue
    for (const block of content) if (block.type === 'tool_use') open.add(block.toolUse.id)
  }
  const [unanswered] = open
  return unanswered === undefined ? undefined : `Call ${unanswered} has no result.`
}
