import type { Session } from '@tapetree/session'
import type { Clock } from '../clock.ts'
import type { LiveEvent } from '../loop/live-event.ts'
import type { Model } from '../models/model.ts'
import type { Requests } from '../permissions/requests.ts'
import type { Gate } from '../tools/gate.ts'
import type { Tool } from '../tools/tool.ts'
import type { RunSettings } from './run-settings.ts'

/** What an agent is made of. What may change between two runs is asked for anew. */
export interface AgentParts {
  session: Session
  model: () => Model
  tools: () => readonly Tool[]
  systemPrompt: () => string
  gate: Gate
  requests: Requests
  /** Where relative paths begin, absolute. */
  cwd: string
  clock: Clock
  settings: RunSettings
  observe: (event: LiveEvent) => void
}
