import type { InboxHold, ModelReference, WaitingMessage } from '@tapetree/session'
import type { PermissionRequestRecord, PlanRecord } from '@tapetree/session/format'
import { payloadFromWire } from './protocol/wire-snapshot.ts'
import { stateValueSchemas, type StateKey, type WireStateValues } from './protocol/state-values.ts'
import { fromWire } from './wire-names.ts'

/** The values of `state(key)`, by key. */
export interface StateValues {
  run: {
    runId: string | null
    isBusy: boolean
    waitingFor: WaitingFor | null
    /** Why the open run does not continue, such as `storage-failed`. */
    stopped?: { type: string; reason: string }
  }
  queue: {
    /** Number of queued follow-ups. */
    queueLength: number
    /** Total number of messages, steers included; if there are very many, `messages` has the first of them. */
    total: number
    hold: InboxHold | null
    messages: ListedMessage[]
  }
  config: {
    model: ModelReference | null
    thinkingLevel: string | null
    mode: string | null
    /** Why the agent uses this mode instead of `sandboxed`: the sandbox does not work. */
    modeReason?: string
    /** The session's last model cannot be opened; `model` replaces it. */
    missingModel?: (ModelReference & { reason: string }) | null
    /** The id of a rewind of the files that was interrupted: it has to be finished or undone. */
    openRestore?: string
    /** Where the tools work, if it is not the server. `problem`: why they cannot be used now. */
    workspace?: { name: string; host: string; folder: string; problem?: string }
  }
  /** `cost` is in US dollars. */
  usage: { turns: number; toolCalls: number; runMs: number; tokens: number; cost: number }
  presence: PresentClient[]
  plan: PlanRecord['plan']['items']
  commands: { name: string; description: string }[]
  permissions: OpenQuestion[]
  /** Set while another process writes the session: it can be watched, and commands are rejected. */
  read_only: ReadOnlyState | null
  /** Those that have been started for the session's folder. */
  language_servers: LanguageServerState[]
}

/** A language server, with what it last found in all files. */
export interface LanguageServerState {
  name: string
  status: 'starting' | 'running' | 'failed'
  /** Why it has failed. */
  problem?: string
  /** Only if it has failed: from when on the next edit starts it again. Null: it has failed too often. */
  retryAt?: string | null
  errors: number
  warnings: number
}

/** Why a session cannot be written, and which process writes it. */
export interface ReadOnlyState {
  reason: string
  owner?: { host?: string | undefined; process?: string | undefined } | undefined
}

/** What a run waits for; `resume` if it was interrupted because its process died. */
export type WaitingFor =
  | { type: 'resume'; runId: string }
  | {
      type: 'auto_retry_start'
      runId: string
      attempt: number
      delayMs: number
      error: { kind: string; message: string }
    }
  | { type: 'auto_compaction_start'; runId: string; reason: string }
  /** Lines wait for the storage, since this time. There may be no run. */
  | { type: 'storage'; runId: string | null; since: string }
  /** The tools work on a host that cannot be reached. There may be no run. */
  | { type: 'tool_host'; runId: string | null; reason: string }

/** `truncated`: the text was too long for the state. The transcript has all of it. */
export type ListedMessage = WaitingMessage & { truncated?: true }

/** `truncated`: the input was too long for the state. The transcript has it. */
export type OpenQuestion = PermissionRequestRecord['permissionRequest'] & { truncated?: true }

export interface PresentClient {
  id: string
  name?: string | undefined
  kind?: string | undefined
  visibility: 'visible' | 'hidden'
  typing: boolean
}

/** Parses a value from the wire. Undefined if the key or the value is of an unknown version. */
export function readStateValue<Key extends StateKey>(key: Key, value: unknown): StateValues[Key] | undefined {
  if (!Object.hasOwn(stateValueSchemas, key)) return undefined
  const parsed = stateValueSchemas[key].safeParse(value)
  return parsed.success ? readers[key](parsed.data as WireStateValues[Key]) : undefined
}

const readers: { [Key in StateKey]: (value: WireStateValues[Key]) => StateValues[Key] } = {
  run: (run) => fromWire(run) as StateValues['run'],
  queue: ({ queue_length: queueLength, total, hold, messages }) => ({
    queueLength,
    total,
    hold,
    messages: messages.map((each) => payloadFromWire('submission', each) as unknown as ListedMessage),
  }),
  config: ({
    model,
    thinking_level: thinkingLevel = null,
    mode = null,
    mode_reason: modeReason,
    missing_model: missing,
    open_restore: open,
    workspace,
  }) => ({
    model: model ? { provider: model.provider, modelId: model.model_id } : null,
    thinkingLevel,
    mode,
    ...(modeReason != null && { modeReason }),
    ...(missing && { missingModel: fromWire(missing) }),
    ...(open != null && { openRestore: open }),
    ...(workspace && { workspace }),
  }),
  usage: (usage) => fromWire(usage),
  presence: (clients) => clients,
  plan: (items) => payloadFromWire('plan', { items })['items'] as StateValues['plan'],
  commands: (commands) => commands,
  permissions: (requests) => requests.map(readOpenQuestion),
  read_only: (readOnly) => readOnly,
  language_servers: (servers) => fromWire(servers),
}

/** The input of the call keeps its names. */
export function readOpenQuestion(request: object): OpenQuestion {
  return payloadFromWire('permission_request', request) as unknown as OpenQuestion
}

/** Whether a request asks the user for text. Any other request asks for permission, which typed text does not grant. */
export function isQuestion({ tool, options }: Pick<OpenQuestion, 'tool' | 'options'>): boolean {
  return tool === 'ask_user' || options.some(({ kind }) => kind === 'answer')
}
