import type { BlobReference, Content, ToolDefinition } from '@tapetree/session'
import type { RecordDraft, ToolStartRecord } from '@tapetree/session/format'
import type { Clock } from '@tapetree/session/util/wait'
import { readToolInput, type InputSchema, type JsonSchema, type ToolInput } from './tool-input.ts'

/** Something that a model may call. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema, as sent. */
  readonly inputSchema: ToolDefinition['inputSchema']
  /** It changes nothing: it may run concurrently with others, and in mode `plan`. */
  readonly readOnly: boolean
  /**
   * What to do if its process died while it ran. `safe`: run it again. `reattach`: it continues without us;
   * query it. `never`: report that it was interrupted and may have taken effect.
   */
  readonly replay: 'safe' | 'reattach' | 'never'
  /** How long it may take before the loop abandons it; a tool with its own deadline may use `Infinity`. */
  readonly deadlineMs: number
  /** The parsed call, or a sentence that explains what is wrong with its input. */
  check(input: unknown, place: { cwd: string }): CheckedCall | string
}

/** A call with validated input. */
export interface CheckedCall {
  /** What it would touch: the permission gate judges this, not the name of the tool. */
  readonly access: readonly Access[]
  /**
   * Why the call cannot work, as a sentence for the model, found without changing anything. The gate calls it
   * before it asks the user, and only if the user's rules let the call read the files it names.
   */
  preflight?(context: ToolContext): Promise<string | undefined>
  /** Details for `tool_start`, which is durable before anything runs; only commands have some. */
  start?(context: ToolContext): Promise<StartDetails> | StartDetails
  run(context: ToolContext): Promise<ToolOutput>
  /** Called when the result is durable: local data for reattaching can be removed. */
  settled?(start: StartDetails, context: ToolContext): Promise<void>
  /** Only if `replay` is `reattach`: the outcome of what an earlier process started. */
  reattach?(start: ToolStartRecord['toolStart'], context: ToolContext): Promise<ToolOutput>
}

export type StartDetails = Pick<
  ToolStartRecord['toolStart'],
  'host' | 'bootId' | 'spool' | 'deadline' | 'childSession' | 'sandbox'
>

/** One thing that a call would touch. Paths are absolute. */
export type Access =
  /** `isRecursive`: the contents of everything below it, too. */
  | { type: 'read'; path: string; isRecursive?: boolean }
  | { type: 'write'; path: string }
  /** `canSandbox`: the tool runs it in the sandbox that the gate names. `outside`: why it must run outside of it. */
  | { type: 'command'; command: string; cwd: string; canSandbox?: boolean; outside?: string }
  | { type: 'fetch'; url: string }
  /** A command in the sandbox wants to reach a host, while it runs. */
  | { type: 'connect'; host: string; port: number; command: string }
  /** A question to the user needs no permission. */
  | { type: 'ask' }
  /** An external tool, known only by its name. */
  | { type: 'tool'; name: string; readOnly: boolean }

export interface ToolContext {
  readonly sessionId: string
  readonly runId: string
  readonly callId: string
  /** Base of relative paths, absolute. */
  readonly cwd: string
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The sandbox in which the gate allowed the call. Absent: it may run without one. */
  readonly box?: BoxKind
  /** The model that reads the result. Absent if a user runs the tool, or on a host of an older version. */
  readonly model?: ReadingModel
  /** A local folder of this session, for spools; absent if the store has none. */
  readonly localFolder: string | undefined
  /** Appends a record; resolves when it is durable. */
  append(record: RecordDraft): Promise<void>
  putBlob(bytes: Uint8Array): Promise<BlobReference>
  getBlob(sha256: string): Promise<Uint8Array>
  /** Live output, for observers. */
  observe(text: string): void
  /** Asks the user and waits for the answer, across a restart if necessary. */
  ask(question: Question): Promise<Answer>
  /**
   * Asks the gate whether the running command may reach a host. Undefined if the question was withdrawn: by `withdrawn`, because the run
   * stops, or because the user sent a message instead.
   */
  reach(target: HostTarget, withdrawn: AbortSignal): Promise<Verdict | undefined>
  /** Asks the gate again, because the call would touch other files than those it was allowed for. Nothing was done so far. */
  readmit(access: readonly Access[]): Promise<Verdict>
}

export interface ReadingModel {
  provider: string
  id: string
  /** False if it cannot see images: it gets words in their place. */
  hasImages: boolean
}

export interface HostTarget {
  host: string
  port: number
}

export interface Question {
  question: string
  /** Without options the user answers with free text. */
  options: { label: string; description?: string }[]
}

export interface Answer {
  /** The chosen label, or the user's own text. */
  text: string
  isCancelled: boolean
}

export interface ToolOutput {
  content: string | Content[]
  isError?: boolean
  /** Of a command that has ended, for a user who ran it. */
  exitCode?: number
}

export interface ToolOptions<Schema extends InputSchema> {
  name: string
  description: string
  /** A Standard Schema (zod, valibot, ArkType) or plain JSON Schema. Inputs that do not fit it never reach `run`. */
  schema: Schema
  /**
   * The schema to send to the model instead of the JSON Schema of `schema`. Required if the library of `schema`
   * provides none.
   */
  inputSchema?: JsonSchema | undefined
  readOnly?: boolean
  replay?: Tool['replay']
  deadlineMs?: number
  /** What the call would touch. Default: nothing that is known but the tool itself. */
  access?: (input: ToolInput<Schema>, place: { cwd: string }) => readonly Access[]
  /** Why the call cannot work, as a sentence for the model. Changes nothing, and reads only the files in `judged`. */
  preflight?: (input: ToolInput<Schema>, context: ToolContext, judged: readonly Access[]) => Promise<string | undefined>
  start?: (input: ToolInput<Schema>, context: ToolContext) => Promise<StartDetails> | StartDetails
  /** `judged` is the result of `access`: if a path now leads elsewhere, this is what was allowed. */
  run: (input: ToolInput<Schema>, context: ToolContext, judged: readonly Access[]) => Returned | Promise<Returned>
  settled?: (start: StartDetails, context: ToolContext) => Promise<void>
  reattach?: (
    input: ToolInput<Schema>,
    start: ToolStartRecord['toolStart'],
    context: ToolContext,
  ) => Promise<ToolOutput>
}

/** What `run` may return: a string is the text that the model reads. */
export type Returned = ToolOutput | string

const defaultDeadlineMs = 10 * 60 * 1000

export function defineTool<const Schema extends InputSchema>(options: ToolOptions<Schema>): Tool {
  const { name, readOnly = false, preflight, start, settled, reattach } = options
  const { inputSchema, parse } = readToolInput(options)
  return {
    name,
    description: options.description,
    inputSchema,
    readOnly,
    replay: options.replay ?? 'never',
    deadlineMs: options.deadlineMs ?? defaultDeadlineMs,
    check: (given, place) => {
      const parsed = parse(given)
      if (typeof parsed === 'string') return parsed
      const { input } = parsed
      const access = options.access?.(input, place) ?? [{ type: 'tool', name, readOnly }]
      return {
        access,
        run: async (context) => {
          const returned = await options.run(input, context, access)
          return typeof returned === 'string' ? { content: returned } : returned
        },
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

/** Abort reason when a process ends and its run stays open: work that can continue without it must not be stopped. */
export class SessionSuspended extends Error {
  override readonly name = 'SessionSuspended'

  constructor() {
    super('The process ended while this was running. It continues when the run is resumed.')
  }
}

/** Decides whether a call may run. It may have to ask the user and wait for the answer. */
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
  /** Why the call cannot work, if so: see `CheckedCall`. */
  preflight?: () => Promise<string | undefined>
}

/** The sandbox for a command: it may write in the working folder, or nowhere. */
export type BoxKind = 'writable' | 'read-only'

/** The reason is a sentence for the model. `box`: the call is allowed only in this sandbox. */
export type Verdict = { type: 'allowed'; box?: BoxKind } | { type: 'denied'; reason: string }

export const allowAll: Gate = { admit: () => Promise.resolve({ type: 'allowed' }) }
