/** The parts of a run, for programs that put their own agent together. */
export { systemClock, type Clock } from '@tapetree/session/util/wait'
export {
  noHooks,
  type AgentStart,
  type BeforeCompact,
  type Hooks,
  type HookSession,
  type TurnEvent,
} from './run/hooks.ts'
export { readLiveDraft } from './run/draft.ts'
export { RunStopped, type LimitName, type Limits, type Spent } from './run/limits.ts'
export {
  type CompactionReason,
  compact,
  defaultCompaction,
  type CompactionOutcome,
  type CompactionSettings,
} from './summary/compaction.ts'
export { type SteerPolicy, defaultRunSettings } from './run/run-settings.ts'
export { abandonRun } from './run/abandon-run.ts'
export type { RunDeps } from './run/run-deps.ts'
export { summarizeBranch } from './summary/branch-summary.ts'
export { checkRequest, checkRequests, type RequestCheck, type RequestCheckOptions } from './prompt/check-requests.ts'
export { contextSize } from './summary/context-size.ts'
export { expandPrompt, type Expansion, type UnknownCommand, type UsedResource } from './prompt/expand.ts'
export { watchEnvironment } from './prompt/environment-facts.ts'
export { defaultRetry, recoverFrom, type RecoveryHistory, type RecoveryStep, type RetryPolicy } from './run/recovery.ts'
export { planOfOpenRun, planResume, type CallAction, type Matter, type ResumePlan } from './run/resume.ts'
export { run, type RunStart } from './run/run.ts'
export { parseShellInput, type ShellInput } from './agent/shell.ts'
export { buildSystemPrompt, type StableEnvironment, type SystemPromptParts } from './prompt/system-prompt.ts'
export type { PromptStart } from './agent/subagents.ts'
export type { Subscribable } from './agent/events.ts'
export { BackgroundCompaction } from './summary/background-compaction.ts'
export type { BranchSummaryInput, BranchSummaryOutcome } from './summary/branch-summary.ts'
export type { CompactionInput } from './summary/compaction.ts'
export type { ToolStart } from './run/resume.ts'
export type { GitStatePlace } from './prompt/git-state.ts'
