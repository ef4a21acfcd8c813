import type { Session } from '@tapetree/session'
import type { Clock } from '@tapetree/session/util/wait'
import type { BackgroundCompaction } from '../summary/background-compaction.ts'
import type { Hooks } from './hooks.ts'
import type { LiveEvent } from './events.ts'
import type { Model, ThinkingLevel } from '../models/model.ts'
import type { Requests } from '../permissions/requests.ts'
import type { Redactor } from '@tapetree/redact'
import type { Access, Gate, Tool } from '../tools/tool.ts'
import type { RunSettings } from './run-settings.ts'
import type { ForeignAgent } from './foreign-agent.ts'
import type { FileRecorder } from '../workspace/workspace-snapshots.ts'

/** What `run` depends on. It calls `model`, `tools` and `systemPrompt` again for each run. */
export interface RunDeps {
  session: Session
  model: () => Model
  tools: () => readonly Tool[]
  systemPrompt: () => string
  gate: Gate
  requests: Requests
  /** Nobody can answer a question of a tool, so none is asked. */
  isUnattended?: boolean
  /** Resolves when the tools can be used. Runs wait for it. */
  ready?: (signal: AbortSignal) => Promise<void>
  /** The host of the session, recorded in `run_start`. */
  owner?: string
  /** The base of relative paths, absolute. */
  cwd: string
  clock: Clock
  settings: RunSettings
  observe: (event: LiveEvent) => void
  hooks?: Hooks
  /** Makes summaries while the run continues. Absent: the run waits for its summaries. */
  background?: BackgroundCompaction
  /** Records the files around the calls that may change them. */
  files?: FileRecorder
  /** Errors of language servers in files that calls change. */
  diagnostics?: {
    afterCall(access: readonly Access[]): void
    /** Called after the calls of each answer. What the model is told; undefined if there is nothing new. */
    report(position: { runId: string; isSettled: boolean }, signal: AbortSignal): Promise<string | undefined>
  }
  /** Redacts live tool output. The session redacts what goes into the log. */
  redactor?: Redactor
  /** The thinking level from the next run on, if it differs from the one in the log. */
  thinkingLevel?: () => ThinkingLevel | undefined
  /** Changes in the environment since the model was last told. They precede the next message; the system prompt stays as it is. */
  environmentChanges?: () => Promise<string | undefined>
  /** Does the turns of the run instead of `model`. */
  foreign?: {
    agent: ForeignAgent
    /** Aborted when the process ends and leaves the run to be resumed. */
    leaving: AbortSignal
    /** Runs the commands that the agent asks for, however long they take. */
    terminal: Tool
  }
  /** The model that replaces an overloaded provider, or one whose quota is exhausted. */
  fallbackModel?: () => Promise<Model | undefined>
}
