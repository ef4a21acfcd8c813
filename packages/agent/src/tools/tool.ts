import type { BlobReference, Content, RecordDraft, ToolDefinition, ToolStartRecord } from '@tapetree/session'
import type { Clock } from '../util/clock.ts'
import { readToolInput, type InputSchema, type JsonSchema, type ToolInput } from './tool-input.ts'

/** Something a model may ask for. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema, as it is sent. */
  readonly inputSchema: ToolDefinition['inputSchema']
  /** It changes nothing: it may run beside others, and in mode `plan`. */
  readonly readOnly: boolean
  /**
   * What may be done when it was running in a process that died. `safe`: run it again. `reattach`: it goes on without us; ask it.
   * `never`: say that it was interrupted and may have taken effect.
   */
  readonly replay: 'safe' | 'reattach' | 'never'
  /** How long it may take before the loop gives up on it; a tool with a deadline of its own may say `Infinity`. */
  readonly deadlineMs: number
  /** The call as the tool understands it, or a sentence on what is wrong with its input. */
  check(input: unknown, place: { cwd: string }): CheckedCall | string
}

/** A call whose input was checked. */
export interface CheckedCall {
  /** What it would touch: the permission gate judges that, not the name of the tool. */
  readonly access: readonly Access[]
  /**
   * Why the call cannot work, as a sentence for the model, found without changing anything. The gate asks before it asks the user, and
   * only if the user's rules let the call read the files it names.
   */
  preflight?(context: ToolContext): Promise<string | undefined>
  /** What `tool_start` says, durable before anything runs; only commands have something to say. */
  start?(context: ToolContext): Promise<StartDetails> | StartDetails
  run(context: ToolContext): Promise<ToolOutput>
  /** The result is durable: what was kept on this machine to be able to reattach may go. */
  settled?(start: StartDetails, context: ToolContext): Promise<void>
  /** Only where `replay` is `reattach`: the outcome of what an earlier process started. */
  reattach?(start: ToolStartRecord['toolStart'], context: ToolContext): Promise<ToolOutput>
}

export type StartDetails = Pick<ToolStartRecord['toolStart'], 'host' | 'bootId' | 'spool' | 'deadline' | 'childSession'>

/** One thing that a call would touch. Paths are absolute. */
export type Access =
  /** `isRecursive`: the contents of everything below it, too. */
  | { type: 'read'; path: string; isRecursive?: boolean }
  | { type: 'write'; path: string }
  | { type: 'command'; command: string; cwd: string }
  | { type: 'fetch'; url: string }
  /** A question to the user needs nobody's leave. */
  | { type: 'ask' }
  /** A tool of somebody else's, known by its name alone. */
  | { type: 'tool'; name: string; readOnly: boolean }

export interface ToolContext {
  readonly sessionId: string
  readonly runId: string
  readonly callId: string
  /** Where relative paths begin, absolute. */
  readonly cwd: string
  readonly signal: AbortSignal
  readonly clock: Clock
  /** A folder of this session on this machine, for spools; absent where the store has none. */
  readonly localFolder: string | undefined
  /** Keeps a fact; resolves when it is durable. */
  append(record: RecordDraft): Promise<void>
  putBlob(bytes: Uint8Array): Promise<BlobReference>
  getBlob(sha256: string): Promise<Uint8Array>
  /** Live output, for whoever watches. */
  observe(text: string): void
  /** Asks the user and waits for the answer, through a restart if need be. */
  ask(question: Question): Promise<Answer>
}

export interface Question {
  question: string
  /** Without options the user answers in words of their own. */
  options: { label: string; description?: string }[]
}

export interface Answer {
  /** The label that was chosen, or the user's own words. */
  text: string
  isCancelled: boolean
}

export interface ToolOutput {
  content: string | Content[]
  isError?: boolean
}

export interface ToolOptions<Schema extends InputSchema> {
  name: string
  description: string
  /** A Standard Schema (zod, valibot, ArkType) or plain JSON Schema. Inputs that do not fit it never reach `run`. */
  schema: Schema
  /** What the model is sent instead of the JSON Schema of `schema`. Required if the library of `schema` gives none. */
  inputSchema?: JsonSchema | undefined
  readOnly?: boolean
  replay?: Tool['replay']
  deadlineMs?: number
  /** What the call would touch. */
  access: (input: ToolInput<Schema>, place: { cwd: string }) => readonly Access[]
  /** Why the call cannot work, as a sentence for the model. Changes nothing, and reads no files but those in `judged`. */
  preflight?: (input: ToolInput<Schema>, context: ToolContext, judged: readonly Access[]) => Promise<string | undefined>
  start?: (input: ToolInput<Schema>, context: ToolContext) => Promise<StartDetails> | StartDetails
  /** `judged` is what `access` gave: where a path has come to lead elsewhere since, this is what was allowed. */
  run: (input: ToolInput<Schema>, context: ToolContext, judged: readonly Access[]) => Promise<ToolOutput>
  settled?: (start: StartDetails, context: ToolContext) => Promise<void>
  reattach?: (
    input: ToolInput<Schema>,
    start: ToolStartRecord['toolStart'],
    context: ToolContext,
  ) => Promise<ToolOutput>
}

const defaultDeadlineMs = 10 * 60 * 1000

export function defineTool<const Schema extends InputSchema>(options: ToolOptions<Schema>): Tool {
  const { preflight, start, settled, reattach } = options
  const { inputSchema, parse } = readToolInput(options)
  return {
    name: options.name,
    description: options.description,
    inputSchema,
    readOnly: options.readOnly ?? false,
    replay: options.replay ?? 'never',
    deadlineMs: options.deadlineMs ?? defaultDeadlineMs,
    check: (given, place) => {
      const parsed = parse(given)
      if (typeof parsed === 'string') return parsed
      const { input } = parsed
      const access = options.access(input, place)
      return {
        access,
        run: (context) => options.run(input, context, access),
        ...(preflight && { preflight: (context: ToolContext) => preflight(input, context, access) }),
        ...(start && { start: (context: ToolContext) => start(input, context) }),
        ...(settled && { settled }),
        ...(reattach && {
          reattach: (started: ToolStartRecord['toolStart'], context: ToolContext) => reattach(input, started, context),
        }),
      }
    },
  }
}

/** Why a signal is aborted where a process ends and its run stays open: what can go on without us is not to be stopped. */
export class LeftBehind extends Error {
  override readonly name = 'LeftBehind'

  constructor() {
    super('The process was ended while this was going on. It is taken up when the run is resumed.')
  }
}

/** Decides whether a call may run. It may have to ask, and then waits for the answer. */
export interface Gate {
  admit(call: GateCall, signal: AbortSignal): Promise<Verdict>
}

export interface GateCall {
  runId: string
  callId: string
  tool: string
  readOnly: boolean
  input: Record<string, unknown>
  access: readonly Access[]
  /** Why the call cannot work, if it cannot: see `CheckedCall`. */
  preflight?: () => Promise<string | undefined>
}

/** The reason is a sentence for the model. */
export type Verdict = { type: 'allowed' } | { type: 'denied'; reason: string }

export const openGate: Gate = { admit: () => Promise.resolve({ type: 'allowed' }) }
