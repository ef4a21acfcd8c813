/** The permission gate by itself, for programs that check calls and commands without running an agent. */
export type { Deletion } from './deleted-paths.ts'
export { describeRule, PermissionGate, type GatePolicy, type GateSandbox, type PermissionGateOptions } from './gate.ts'
export { judgeCall } from './judge-call.ts'
export { judgeCommand } from './judge-command.ts'
export { exitPlanTool, permissionModes, toolsFor, type PermissionMode } from './modes.ts'
export type { Judgement, Policy } from './policy.ts'
export { proposeRules, type PermissionHistory, type ProposeOptions, type RuleProposal } from './propose-rules.ts'
export { noRules, ruleSchema, type Effect, type Rule, type RuleLayers } from './rules.ts'
export {
  Requests,
  type Answered,
  type PermissionRequest,
  type PermissionResult,
  type RequestAnswer,
} from './requests.ts'
