import type { Cause, EntryDraft, Session } from '@tapetree/session'
import type { Clock } from '../util/clock.ts'
import type { Hooks } from './hooks.ts'
import type { LiveEvent } from './events.ts'
import type { Model, ThinkingLevel } from '../models/model.ts'
import type { Requests } from '../permissions/requests.ts'
import type { Redactor } from '@tapetree/redact'
import type { Gate, Tool } from '../tools/tool.ts'
import type { RunSettings } from './run-settings.ts'

/** What an agent is made of. What may change between two runs is asked for anew. */
export interface AgentParts {
  session: Session
  model: () => Model
  tools: () => readonly Tool[]
  systemPrompt: () => string
  gate: Gate
  requests: Requests
  /** What hosts the session; said at the start of each run. */
  owner?: string
  /** Where relative paths begin, absolute. */
  cwd: string
  clock: Clock
  settings: RunSettings
  observe: (event: LiveEvent) => void
  hooks?: Hooks
  /** Live output passes it; what is kept passes it on its way into the log. */
  redactor?: Redactor
  /** Tells of each run that begins: what others append while it goes on must hang on its head. */
  onRun?: (run: { append(draft: EntryDraft, request?: undefined, cause?: Cause): Promise<void> }) => void
  /** The level to use from the next run on, where it is not the one that the log says. */
  thinkingLevel?: () => ThinkingLevel | undefined
  /** What has changed around the session since it was last told: it is said before the next message, and not in the system prompt. */
  news?: () => Promise<string | undefined>
  /** Who steps in for a provider that is overloaded, or whose quota is used up. */
  fallbackModel?: () => Promise<Model | undefined>
}
