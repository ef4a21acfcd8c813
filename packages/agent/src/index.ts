export { systemClock, type Clock } from './clock.ts'
export { RunStopped, type LimitName, type Limits, type Spent } from './loop/limits.ts'
export type { CompactionReason, LiveEvent } from './loop/live-event.ts'
export type { RunEnd, SteerPolicy } from './loop/loop-context.ts'
export {
  thinkingLevels,
  type FinishReason,
  type Model,
  type ModelCall,
  type ModelLimits,
  type ModelPart,
  type ModelRequest,
  type ProviderMetadata,
  type ThinkingLevel,
} from './models/model.ts'
export { ModelError, type ModelErrorKind } from './models/model-error.ts'
export { exitPlanTool } from './permissions/exit-plan.ts'
export { PermissionGate, type GatePolicy, type PermissionGateOptions } from './permissions/gate.ts'
export { permissionModes, toolsFor, type PermissionMode } from './permissions/modes.ts'
export { noRules, ruleSchema, type Effect, type Rule, type RuleLayers } from './permissions/rules.ts'
export { Requests, type Answered, type PermissionRequest, type PermissionResult } from './permissions/requests.ts'
export type { AgentParts } from './session/agent-parts.ts'
export { summariseBranch } from './session/branch-summary.ts'
export { compact, defaultCompaction, type CompactionOutcome, type CompactionSettings } from './session/compaction.ts'
export { contextSize } from './session/context-size.ts'
export {
  defaultRetry,
  recoverFrom,
  type RecoveryHistory,
  type RecoveryStep,
  type RetryPolicy,
} from './session/recovery.ts'
export { abandonRun, planResume, type CallAction, type Matter, type ResumePlan } from './session/resume.ts'
export { run, type RunStart } from './session/run.ts'
export { defaultRunSettings, type RunSettings } from './session/run-settings.ts'
export { allTools, type AllToolsOptions } from './tools/all-tools.ts'
export { askUserTool } from './tools/ask-user.ts'
export { bashTool, type BashOptions } from './tools/bash.ts'
export { editTool } from './tools/edit.ts'
export { fetchTool } from './tools/fetch.ts'
export { findTool } from './tools/find.ts'
export { openGate, type Gate, type GateCall, type Verdict } from './tools/gate.ts'
export { grepTool } from './tools/grep.ts'
export { jobKillTool } from './tools/job-kill.ts'
export { jobOutputTool } from './tools/job-output.ts'
export { Jobs } from './tools/jobs.ts'
export { lsTool } from './tools/ls.ts'
export { readTool } from './tools/read.ts'
export { todoWriteTool } from './tools/todo-write.ts'
export {
  defineTool,
  type Access,
  type Answer,
  type CheckedCall,
  type Question,
  type StartDetails,
  type Tool,
  type ToolContext,
  type ToolOptions,
  type ToolOutput,
} from './tools/tool.ts'
export { writeTool } from './tools/write.ts'
